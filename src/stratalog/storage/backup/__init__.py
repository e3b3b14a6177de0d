"""Backups: closed segments and what belongs to them, copied with the same bytes and offsets.

A backup is a manifest that names files by their content. What an earlier backup has is not copied
again, and none depends on another: each can be restored, or removed, by itself.
"""
