package postgres

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/store"
)

// newsChannel is where the server passes on which executions have new rows.
const newsChannel = "tandem_rows"

// A message names executions like this, or nothing when they are too many for one, or have names with these characters.
const (
	betweenParts, betweenExecutions = "\x1f", "\x1e"
	// maxMessage is less than what the server takes, which is 8,000 bytes.
	maxMessage = 7900
)

// announce lets a transaction tell those who listen which executions have new rows, with one message, or as many as are needed where
// several processes write.
func (c *committer) announce(t *transaction, batch []*work) {
	var text strings.Builder
	sealing := c.db.sealing.Load()
	room := sealing.room()
	notify := func(text string) {
		t.addStatement(`SELECT pg_notify($1, $2)`, newsChannel, sealing.wrap(newsChannel, backendOf(t.conn), text))
	}
	any := false
	for _, w := range batch {
		if len(w.rows) == 0 || w.err != nil {
			continue
		}
		any = true
		part := kept(w.key.Workspace) + betweenParts + kept(w.key.ID) + betweenParts + strconv.FormatUint(w.rows[len(w.rows)-1].After+1, 10)
		odd := strings.Count(part, betweenParts) != 2 || strings.Contains(part, betweenExecutions)
		crowded := text.Len()+len(part) >= room
		if crowded && c.db.shared && !odd && len(part) < room { // others have to know which: they do not see what is written here
			notify(text.String())
			text.Reset()
			crowded = false
		}
		if odd || crowded {
			notify("")
			return
		}
		if text.Len() > 0 {
			text.WriteString(betweenExecutions)
		}
		text.WriteString(part)
	}
	if any {
		notify(text.String())
	}
}

// freshOf reads a message; nil says that anything may be new.
func freshOf(message string) []store.Fresh {
	if message == "" {
		return nil
	}
	var list []store.Fresh
	for part := range strings.SplitSeq(message, betweenExecutions) {
		fields := strings.Split(part, betweenParts)
		if len(fields) != 3 {
			return nil
		}
		seq, err := strconv.ParseUint(fields[2], 10, 64)
		if err != nil {
			return nil
		}
		ref := store.Ref{Workspace: showNUL.Replace(fields[0]), Execution: showNUL.Replace(fields[1])}
		list = append(list, store.Fresh{Ref: ref, Seq: seq})
	}
	return list
}

// News are those of a database. They need not be those of the process that owns it.
type News struct {
	config  *pgx.ConnConfig
	sealing *sealing
}

// NewsOf listens to a database at an address, with connections of its own. With a seal only sealed messages are believed.
func NewsOf(url string, seal store.Seal, log *slog.Logger) (*News, error) {
	config, err := configure(url)
	if err != nil {
		return nil, err
	}
	n := &News{config: config.ConnConfig}
	if seal != nil {
		n.sealing = newSealing(seal, log)
	}
	return n, nil
}

// News are those of the database.
func (db *DB) News() *News { return &News{db.pool.Config().ConnConfig, db.sealing.Load()} }

// doubtEvery is how often anything is said to be new, at most, because of messages that are not believed: who has sent them may be a
// process with another key, and what it has written is to be found all the same.
const doubtEvery = time.Minute

// doubt is what is done about messages that are not believed.
type doubt struct {
	owed bool
	// looked is when anything was said to be new.
	looked time.Time
}

// due says that anything is to be said to be new.
func (d *doubt) due(now time.Time) bool {
	if !d.owed || now.Sub(d.looked) < doubtEvery {
		return false
	}
	*d = doubt{looked: now}
	return true
}

// Listen implements [store.News]. When the connection is lost another is made.
func (n *News) Listen(ctx context.Context, told func([]store.Fresh)) error {
	var d doubt
	look := func() {
		if d.due(time.Now()) {
			told(nil)
		}
	}
	return listen(ctx, n.config, func(message *pgconn.Notification) {
		if message == nil { // what came before is not heard
			d = doubt{looked: time.Now()}
			told(nil)
			return
		}
		if text, ok := n.sealing.unwrap(message.Channel, message.PID, message.Payload); ok {
			told(freshOf(text))
		} else {
			d.owed = true
		}
		look()
	}, look, newsChannel)
}
