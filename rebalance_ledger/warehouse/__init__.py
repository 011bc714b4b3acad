"""Where the ledger's tables live, how a staged day becomes published, and how they are read without a JVM."""
