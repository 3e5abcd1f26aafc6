"""capacity: queues with a guaranteed, a deserved and a largest amount of each resource, flat or in a tree (spec 04 §7).

``limits`` works out what queues may hold from their specs, ``accounts`` keeps what they do hold in a session,
``reclaim`` chooses victims, ``plugin`` ties it to the extension points.
"""

from vcscheduler.plugins.capacity.plugin import CapacityPlugin

__all__ = ["CapacityPlugin"]
