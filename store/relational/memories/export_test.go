package memories

// ForgetVectors lets go of the vectors that are kept at hand.
func (x *Memories) ForgetVectors() {
	c := &x.vectors
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.sets { // order does not matter: all are dropped
		c.drop(e)
	}
}

// LimitVectors bounds the vectors that are kept at hand, in bytes.
func (x *Memories) LimitVectors(most int64) { x.vectors.most = most }

// KeptVectors is how many bytes of vectors are kept at hand.
func (x *Memories) KeptVectors() int64 {
	x.vectors.mu.Lock()
	defer x.vectors.mu.Unlock()
	return x.vectors.size
}
