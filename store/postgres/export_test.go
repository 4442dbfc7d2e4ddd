package postgres

// BlobUpkeep is the large values as whoever removes them sees them.
func (db *DB) BlobUpkeep() blobUpkeep { return blobUpkeep{blobs{db}} }
