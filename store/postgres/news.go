package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

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

// announce lets a transaction tell those who listen which executions have new rows, with one message.
func (c *committer) announce(t *transaction, batch []*work) {
	var text strings.Builder
	any := false
	for _, w := range batch {
		if len(w.rows) == 0 || w.err != nil {
			continue
		}
		any = true
		part := kept(w.key.Workspace) + betweenParts + kept(w.key.ID) + betweenParts + strconv.FormatUint(w.rows[len(w.rows)-1].After+1, 10)
		if strings.Count(part, betweenParts) != 2 || strings.Contains(part, betweenExecutions) || text.Len()+len(part) >= maxMessage {
			t.add(`SELECT pg_notify($1, '')`, newsChannel)
			return
		}
		if text.Len() > 0 {
			text.WriteString(betweenExecutions)
		}
		text.WriteString(part)
	}
	if any {
		t.add(`SELECT pg_notify($1, $2)`, newsChannel, text.String())
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
		list = append(list, store.Fresh{Ref: store.Ref{Workspace: showNUL.Replace(fields[0]), Execution: showNUL.Replace(fields[1])}, Seq: seq})
	}
	return list
}

// News are those of a database. They need not be those of the process that owns it.
type News struct{ config *pgx.ConnConfig }

// NewsOf listens to a database at an address, with connections of its own.
func NewsOf(url string) (*News, error) {
	config, err := configure(url)
	if err != nil {
		return nil, err
	}
	return &News{config.ConnConfig}, nil
}

// News are those of the database.
func (db *DB) News() *News { return &News{db.pool.Config().ConnConfig} }

// listenTimeout is how long nothing may be heard before it is asked whether the server is still there.
const listenTimeout = 15 * time.Second

// Listen implements [store.News]. When the connection is lost another is made.
func (n *News) Listen(ctx context.Context, told func([]store.Fresh)) error {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		heard, err := n.listen(ctx, told)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !heard && !isAway(err) && !lostConnection(&serverError{err}) {
			return err
		}
		if heard {
			pause = firstLook
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// listen listens as long as a connection lasts, and says whether there was one.
func (n *News) listen(ctx context.Context, told func([]store.Fresh)) (heard bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, n.config.Copy())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `LISTEN `+newsChannel); err != nil {
		return false, err
	}
	told(nil) // what came before is not heard
	for {
		waiting, cancel := context.WithTimeout(ctx, listenTimeout)
		message, err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
			told(freshOf(message.Payload))
		case ctx.Err() != nil || !quiet:
			return true, err
		default:
			asking, cancel := context.WithTimeout(ctx, listenTimeout)
			err := conn.Ping(asking)
			cancel()
			if err != nil {
				return true, err
			}
		}
	}
}
