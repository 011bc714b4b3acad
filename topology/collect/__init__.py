"""Making exports: the one writer of them, and what turns other people's texts and files into their lines.

What belongs here: how a capture gets onto the disk, and the sources that are captured or converted. What does not: what an
export is (`topology.contract`, `topology.manifest`), and what its payloads mean (`topology.payloads`).
"""
