"""Programs that write files of this repository: samples and expected data of tests. No module of the product imports them."""
