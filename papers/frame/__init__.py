"""What runs a table and writes its report, whatever the table is about."""
