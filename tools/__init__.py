"""Programs that write files of this repository: samples and the data that tests compare with. Nothing imports them."""
