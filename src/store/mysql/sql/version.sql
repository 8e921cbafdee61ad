select version() as version
