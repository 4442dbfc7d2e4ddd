package mail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"time"
)

const (
	// proofWindow is how old a proof of Mailgun may be, and how far ahead its clock.
	proofWindow = 15 * time.Minute
	// maxProofs is how many proofs are remembered. One that comes while there are more is not taken: the service sends it again.
	maxProofs = 100_000
)

// mailgunProof is how Mailgun shows that a form is from there: a signature of the time and of a token that is good once. What else is in
// the form is not signed.
type mailgunProof struct{ timestamp, token, signature string }

// fits says whether the proof was made with a secret, lately.
func (p mailgunProof) fits(secret string, now time.Time) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(p.timestamp + p.token))
	given, err := hex.DecodeString(p.signature)
	if err != nil || p.token == "" || !hmac.Equal(mac.Sum(nil), given) {
		return false
	}
	seconds, err := strconv.ParseInt(p.timestamp, 10, 64)
	return err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= proofWindow
}

// proofs remember which proofs were used for which mail: a recorded proof cannot be used for another mail. They are kept in memory, for as
// long as a proof is good.
type proofs struct {
	mu   sync.Mutex
	used map[string]usedProof
	// swept is when those were last removed that are of no use any more.
	swept time.Time
}

type usedProof struct {
	mail [sha256.Size]byte
	till time.Time
}

// useProof says whether a proof that fits may be used for a mail: for the first time, or for the same mail once more.
func (u *proofs) useProof(trigger string, p mailgunProof, mail [sha256.Size]byte, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.swept) > proofWindow {
		u.swept = now
		for key, one := range u.used { // order does not matter: each is for itself
			if now.After(one.till) {
				delete(u.used, key)
			}
		}
	}
	key := trigger + "\x00" + p.timestamp + p.token
	if before, known := u.used[key]; known {
		return before.mail == mail
	}
	if len(u.used) >= maxProofs {
		return false
	}
	if u.used == nil {
		u.used = map[string]usedProof{}
	}
	u.used[key] = usedProof{mail, now.Add(2 * proofWindow)} // its time may be ahead of ours
	return true
}
