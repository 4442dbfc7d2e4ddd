package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/fault"
	"tandem/text"
)

// listenTimeout is how long nothing may be heard before it is asked whether the server is still there.
const listenTimeout = 15 * time.Second

// listen calls back with each message on some channels, and without one whenever messages may have been missed, which is also how it
// begins. When the connection is lost another is made. Quiet is called now and then while nothing comes; it may be nil.
func listen(ctx context.Context, config *pgx.ConnConfig, told func(*pgconn.Notification), quiet func(), channels ...string) error {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		heard, err := listenOnce(ctx, config, told, quiet, channels)
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

// listenOnce listens as long as a connection lasts, and says whether there was one.
func listenOnce(ctx context.Context, config *pgx.ConnConfig, told func(*pgconn.Notification), quiet func(),
	channels []string) (heard bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, channel := range channels {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{channel}.Sanitize()); err != nil {
			return false, err
		}
	}
	told(nil)
	for {
		waiting, cancel := context.WithTimeout(ctx, listenTimeout)
		message, err := conn.WaitForNotification(waiting)
		silent := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
			told(message)
		case ctx.Err() != nil || !silent:
			return true, err
		default:
			if quiet != nil {
				quiet()
			}
			asking, cancel := context.WithTimeout(ctx, listenTimeout)
			err := conn.Ping(asking)
			cancel()
			if err != nil {
				return true, err
			}
		}
	}
}

// Wire passes messages by the server of a database, which drops them once they are heard. Long ones go in parts: each begins
// with whether more follow and with its number, since the server passes on the same text only once.
type Wire struct{ db *DB }

// The signs that parts begin with, and what ends their number.
const partMore, partLast, endOfNumber = "+", ".", ":"

// Wire are the messages between those who use the database.
func (db *DB) Wire() *Wire { return &Wire{db} }

// Send implements [store.Wire]. It does not wait for a disk: nobody keeps messages.
func (w *Wire) Send(ctx context.Context, channel, message string) error {
	conn, err := w.db.pool.Acquire(ctx)
	if err != nil {
		return w.failed(err)
	}
	defer conn.Release()
	message = w.db.sealing.Load().wrap(channel, backendOf(conn.Conn()), message)
	if len(message) > maxWhole {
		return fault.Newf(fault.TooLarge, "a message of %d bytes is too long; the limit is %d", len(message), maxWhole)
	}
	var b pgx.Batch // all of it is one transaction, so that parts come together or not at all
	b.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
	for n, rest := 0, message; ; n++ {
		part, sign := rest, partLast
		if len(rest) > maxMessage {
			part, sign = text.Head(rest, maxMessage), partMore
		}
		rest = rest[len(part):]
		b.Queue(`SELECT pg_notify($1, $2)`, channel, sign+strconv.Itoa(n)+endOfNumber+part)
		if sign == partLast {
			break
		}
	}
	return w.failed(conn.SendBatch(ctx, &b).Close())
}

// failed is why a message was not sent.
func (w *Wire) failed(err error) error {
	if err != nil && isAway(&serverError{err}) {
		return unavailable(err)
	}
	return err
}

// partOf reads a part of a message.
func partOf(text string) (sign string, number int, part string, ok bool) {
	head, part, ok := strings.Cut(text, endOfNumber)
	if !ok || head == "" {
		return "", 0, "", false
	}
	sign = head[:1]
	number, err := strconv.Atoi(head[1:])
	return sign, number, part, err == nil && number >= 0 && (sign == partMore || sign == partLast)
}

// Hear implements [store.Wire]. What is not a message of a process with the same key is dropped.
func (w *Wire) Hear(ctx context.Context, heard func(channel, message string), channels ...string) error {
	sealing := w.db.sealing.Load()
	var parts assembly
	return listen(ctx, w.db.pool.Config().ConnConfig, func(message *pgconn.Notification) {
		if message == nil {
			parts.drop()
			heard("", "")
			return
		}
		whole, done, ok := parts.addPart(message)
		switch {
		case !ok:
			parts.drop()
			sealing.drop(message.Channel, message.PID)
		case done:
			if text, ok := sealing.unwrap(message.Channel, message.PID, whole); ok {
				heard(message.Channel, text)
			}
		}
	}, nil, channels...)
}
