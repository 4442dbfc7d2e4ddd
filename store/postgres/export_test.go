package postgres

// BlobUpkeep is the large values as whoever removes them sees them.
func (db *DB) BlobUpkeep() blobUpkeep { return blobUpkeep{blobs{db}} }

// OwnerLock is the lock of the process that owns a database.
const OwnerLock = ownerLock

// Suits says whether a server can be used, by what it tells of itself.
var Suits = suits // read-only
