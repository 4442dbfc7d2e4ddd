package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	mathrand "math/rand/v2"
	"time"
)

// clipped keeps the first bytes that are written and drops the rest, so that a flood costs nothing.
type clipped struct {
	b     []byte
	limit int
	// told, unless nil, is told what is kept as it comes.
	told func(text []byte)
}

func (c *clipped) reset(limit int) { c.b, c.limit = c.b[:0], limit }

func (c *clipped) bytes() []byte { return c.b }

func (c *clipped) Write(b []byte) (int, error) {
	kept := b[:min(len(b), c.limit-len(c.b))]
	c.b = append(c.b, kept...)
	if c.told != nil && len(kept) > 0 {
		c.told(kept)
	}
	return len(b), nil
}

// guestClock is what code sees of time: one moment when the call fixes it, else the real clock.
type guestClock struct {
	fixed int64
	start time.Time
}

func (c *guestClock) setClock(fixed int64) { c.fixed, c.start = fixed, time.Now() }

func (c *guestClock) now() time.Time {
	if c.fixed != 0 {
		return time.Unix(0, c.fixed)
	}
	return time.Now()
}

// nano is for measuring durations and starts anew with every call.
func (c *guestClock) nano() int64 { return int64(time.Since(c.start)) + 1 }

// guestRandom is what code sees of randomness: repeatable from a seed, else real.
type guestRandom struct{ seeded *mathrand.ChaCha8 }

func (g *guestRandom) setSeed(seed []byte) {
	g.seeded = nil
	if len(seed) > 0 {
		g.seeded = mathrand.NewChaCha8(sha256.Sum256(seed))
	}
}

func (g *guestRandom) Read(b []byte) (int, error) {
	if g.seeded != nil {
		return g.seeded.Read(b)
	}
	return rand.Read(b)
}

// fresh is a seed for a call that names none.
func (g *guestRandom) fresh() []byte {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return b
}
