"""Making exports: the one writer of them, and what turns other people's texts and files into their lines.

What belongs here: how a capture gets onto the disk, and the sources that are captured or converted. What does not: what an
export is (`rebalance_ledger.exports.contract`, `rebalance_ledger.exports.manifest`), and what its payloads mean (`rebalance_ledger.exports.payloads`).
"""
