package postgres

// DroppedMessages is how many messages were not believed.
func (db *DB) DroppedMessages() uint64 {
	s := db.sealing.Load()
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}
