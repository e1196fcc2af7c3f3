"""The table `local_changes/`: what each published metadata delta told each broker to do."""
