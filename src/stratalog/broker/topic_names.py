"""Topic ids as they travel to names and back, kept for as long as the metadata stays the same."""

from stratalog.metadata.image import MetadataImage
from stratalog.metadata.store import MetadataStore


class TopicNames:
    """An image's topics by the sixteen bytes of their ids: making a UUID of those for each request
    would take longer than looking it up."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._image: MetadataImage | None = None
        self._names: dict[bytes, str] = {}

    def by_id(self, topic_id: bytes) -> str:
        """The topic's name; empty if there is none."""
        image = self._store.image
        if image is not self._image:
            known = self._image
            self._image = image
            if known is None or known.topics_by_id is not image.topics_by_id:
                self._names = {key.bytes: topic.name for key, topic in image.topics_by_id.items()}
        return self._names.get(topic_id, "")
