"""The loss of a record, computed: exactly for one record, outward-rounded in numpy for tables, and as SQL and JavaScript."""
