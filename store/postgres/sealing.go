package postgres

import (
	"encoding/base64"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tandem/store"
)

// sealing keeps messages from those who may connect to the database and do not belong to the installation: the server passes on what
// every role sends, to every role that listens. A message is bound to its channel and to the process of the server that it was sent by,
// which the server names with each message, so that nobody else can send it again. A nil one leaves messages as they are.
type sealing struct {
	seal store.Seal
	log  *slog.Logger

	mu      sync.Mutex
	dropped uint64
	// next is when it may be logged again that messages were dropped, told how many it was said of.
	next time.Time
	told uint64
}

// logEvery is how often it is logged at most that messages were dropped.
const logEvery = time.Hour

// SealMessages has messages sealed from now on, and believes only those that are. It is called before anybody listens or sends.
func (db *DB) SealMessages(seal store.Seal, log *slog.Logger) {
	db.sealing.Store(newSealing(seal, log))
}

func newSealing(seal store.Seal, log *slog.Logger) *sealing { return &sealing{seal: seal, log: log} }

// room is how long a text may be that is sent at once.
func (s *sealing) room() int {
	if s == nil {
		return maxMessage
	}
	const most = 100 // what sealing adds, and more
	return maxMessage/4*3 - most
}

func boundTo(channel string, pid int64) []byte {
	return []byte(channel + "\x00" + strconv.FormatInt(pid, 10))
}

// wrap seals a message that is sent by a process of the server.
func (s *sealing) wrap(channel string, by backend, message string) string {
	if s == nil {
		return message
	}
	return base64.RawStdEncoding.EncodeToString(s.seal.SealMessage([]byte(message), boundTo(channel, by.pid)))
}

// unwrap opens a message; false: it is not to be believed, which is counted and logged now and then.
func (s *sealing) unwrap(channel string, pid uint32, text string) (message string, ok bool) {
	if s == nil {
		return text, true
	}
	if sealed, err := base64.RawStdEncoding.DecodeString(text); err == nil {
		if raw, ok := s.seal.OpenMessage(sealed, boundTo(channel, int64(pid))); ok {
			return string(raw), true
		}
	}
	s.drop(channel, pid)
	return "", false
}

// drop counts a message that is not believed.
func (s *sealing) drop(channel string, pid uint32) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped++
	if now := time.Now(); now.After(s.next) {
		s.log.Warn("messages in the database (NOTIFY) are not from a process with this master key and were dropped; "+
			"let no other role connect to the database, and give all servers and workers the same key",
			"messages", s.dropped-s.told, "channel", channel, "process", pid)
		s.next, s.told = now.Add(logEvery), s.dropped
	}
}

// assembly puts the parts of a long message together. Those of one come one after the other, from the same process of the server:
// whatever else comes in between is not part of it.
type assembly struct {
	channel string
	pid     uint32
	next    int
	text    []byte
}

// maxWhole is how long a message may be in all, as it is sent.
const maxWhole = 4 << 20

// addPart takes a part in. Done says that it was the last one, ok that it belongs to a message at all.
func (a *assembly) addPart(m *pgconn.Notification) (whole string, done, ok bool) {
	sign, number, part, ok := partOf(m.Payload)
	if !ok {
		return "", false, false
	}
	if number == 0 {
		*a = assembly{channel: m.Channel, pid: m.PID}
	}
	if number != a.next || m.Channel != a.channel || m.PID != a.pid || len(a.text)+len(part) > maxWhole {
		return "", false, false
	}
	a.next++
	if sign == partLast && number == 0 {
		return part, true, true
	}
	if a.text = append(a.text, part...); sign != partLast {
		return "", false, true
	}
	whole = string(a.text)
	a.drop()
	return whole, true, true
}

// drop forgets what has come of a message.
func (a *assembly) drop() { *a = assembly{next: -1} }
