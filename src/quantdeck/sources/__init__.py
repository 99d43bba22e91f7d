"""Where facts come from. A folder is a port and a file in it an adapter; `sql` holds rows and their SQL."""
