// KafkaJS, told what to do one line at a time.
//
// A line of JSON on standard input names an operation; its answer is a line of JSON on standard
// output. What was thrown is an answer too: {"error": name, "message": text}. Consumers live from
// "join" to "leave". What is right is for the asker to judge: nothing is asserted here.

'use strict'

const readline = require('node:readline')
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

const kafka = new Kafka({
  brokers: [process.argv[2]],
  clientId: 'kafkajs',
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 8 }
})
const members = new Map()

const text = (bytes) => (bytes === null || bytes === undefined ? null : bytes.toString('utf8'))

const headers = (found) =>
  Object.fromEntries(Object.entries(found || {}).map(([name, value]) => [name, text(value)]))

async function produce ({ topic, messages, codec, idempotent, acks }) {
  const producer = kafka.producer({ idempotent: Boolean(idempotent) })
  await producer.connect()
  try {
    const compression = CompressionTypes[codec || 'None']
    return await producer.send({ topic, messages, compression, acks: acks ?? -1 })
  } finally {
    await producer.disconnect()
  }
}

async function join ({ name, groupId, topic }) {
  const consumer = kafka.consumer({ groupId, heartbeatInterval: 200, maxWaitTimeInMs: 50 })
  const member = { consumer, held: [], records: [] }
  members.set(name, member)
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.held = payload.memberAssignment[topic] || []
  })
  consumer.on(consumer.events.REBALANCING, () => {
    member.held = []
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      member.records.push({
        partition,
        offset: Number(message.offset),
        key: text(message.key),
        value: text(message.value),
        timestamp: Number(message.timestamp),
        headers: headers(message.headers)
      })
    }
  })
  return {}
}

const shown = (member) => ({ held: [...member.held].sort(), records: member.records })

// Until the members hold that many partitions, each at least one, and have read that many records.
async function settled ({ partitions, records }) {
  const deadline = Date.now() + 20000
  const isSettled = () => {
    const all = [...members.values()]
    const held = all.flatMap((member) => member.held)
    const read = all.reduce((sum, member) => sum + member.records.length, 0)
    return all.every((member) => member.held.length > 0) && held.length === partitions &&
      new Set(held).size === partitions && read >= records
  }
  while (!isSettled() && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return Object.fromEntries([...members].map(([name, member]) => [name, shown(member)]))
}

async function leave ({ name }) {
  const member = members.get(name)
  members.delete(name)
  const last = shown(member)
  await member.consumer.disconnect()
  return { ...last, records: member.records }
}

// Any method of the admin client, by its name, with its one argument. One client for all calls:
// some only know topics that an earlier call of the same client asked about.
let client = null

async function admin ({ call, argument }) {
  if (client === null) {
    client = kafka.admin()
    await client.connect()
  }
  return (await client[call](argument)) ?? null
}

const operations = { produce, join, settled, leave, admin }

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const question = JSON.parse(line)
    let answer
    try {
      answer = await operations[question.op](question)
    } catch (error) {
      answer = { error: error.name, type: error.type, message: error.message }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  process.exit(0)
}

main()
