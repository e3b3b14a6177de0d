// A YARN cluster of one node, in this JVM, until standard input ends. The argument names the file
// that clients find it by.

import java.io.FileOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

public class Yarn {
    public static void main(String[] arguments) throws Exception {
        Configuration asked = new YarnConfiguration();
        asked.set("fs.defaultFS", "file:///");
        asked.set(
                "yarn.resourcemanager.scheduler.class",
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler");
        asked.setInt("yarn.scheduler.minimum-allocation-mb", 64);
        asked.setInt("yarn.nodemanager.resource.memory-mb", 8192);
        // The machine's memory and disk are no part of what is tested.
        asked.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
        asked.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
        asked.setFloat(
                "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage",
                100);
        // Logs stay after the application, for the test to look into.
        asked.setInt("yarn.nodemanager.delete.debug-delay-sec", 600);
        MiniYARNCluster cluster = new MiniYARNCluster("pages", 1, 1, 1);
        cluster.init(asked);
        cluster.start();
        try (FileOutputStream site = new FileOutputStream(arguments[0])) {
            cluster.getConfig().writeXml(site);
        }
        System.out.println("YARN is ready");
        while (System.in.read() != -1) {}
        System.exit(0);
    }
}
