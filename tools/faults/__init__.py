"""The library under odd input, hostile files, kills, full disks and load; see README.md."""
