package app

import (
	"context"
	"testing"
	"time"

	"tandem/host/hosttest"
	"tandem/identity"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
)

// outageSize is how many executions are under way when the database is killed, and how many come after it. They make less than twenty writes each before that.
const outageSize = 6

// cutOff is a database whose server was killed: that it cannot be let go of in good order is no matter.
type cutOff struct{ Store }

// Close implements Store.
func (c cutOff) Close() error {
	_ = c.Store.Close() // the connection that has the lock may be one of those that are lost
	return nil
}

// TestHostOutage_PostgreSQLIsKilled ends PostgreSQL at once, without a word to anybody, while runs of the local host end, and starts it again. In some of
// the plays the process dies as well, in the midst of its work before that, or of what it catches up on afterwards: its successor finds everything in the
// database.
func TestHostOutage_PostgreSQLIsKilled(t *testing.T) {
	t.Parallel()
	for _, play := range []struct {
		name  string
		blows []hosttest.Blow
		// before is how many of the processes die before the database does.
		before int
		long   bool
	}{
		{name: "TheProcessLives", long: true},
		{name: "TheProcessDiesBefore", blows: []hosttest.Blow{{Write: 3 * outageSize, How: hosttest.Before}}, before: 1, long: true},
		{name: "TheProcessDiesAfter", blows: []hosttest.Blow{{Write: 20 * outageSize, How: hosttest.Before}}, long: true},
		{name: "TheProcessDiesBeforeAndAfter", before: 1,
			blows: []hosttest.Blow{{Write: 4 * outageSize, How: hosttest.After}, {Write: 20 * outageSize, How: hosttest.Before}}},
	} {
		if play.long && !long() {
			continue
		}
		t.Run(play.name, func(t *testing.T) {
			t.Parallel()
			pg := postgrestest.Start(t)
			address := pg.Database(t)
			rig := suiteRig(t, func(ctx context.Context) (Store, error) {
				db, err := postgres.OpenOwned(ctx, postgres.Options{URL: address + "&pool_max_conns=8"})
				if err != nil {
					return nil, err
				}
				return cutOff{db}, nil
			})
			started, start := 0, rig.Start
			rig.Start = func(ctx context.Context, s hosttest.Setup) (hosttest.Host, error) {
				started++
				return start(ctx, s)
			}
			report := hosttest.Load(outageSize, func(_, end func()) {
				if started != 1+play.before {
					t.Errorf("the database is killed in the midst of process %d, want %d", started, 1+play.before)
				}
				pg.Restart(t, end)
				awaitDatabase(t, rig)
			}).Play(t, rig, hosttest.Fate{Blows: play.blows})
			if report.Crashes != len(play.blows) {
				t.Errorf("%d processes have died, want %d", report.Crashes, len(play.blows))
			}
			t.Logf("the first process made %d writes", report.Writes)
		})
	}
}

// awaitDatabase returns when a database can be read again: connections of before are found out to be lost.
func awaitDatabase(t *testing.T, rig hosttest.Rig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for {
		_, err := rig.Stores().Inbox.PendingExecutions(ctx, identity.System(""))
		if err == nil {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond): // nothing tells when it is back
		case <-ctx.Done():
			t.Fatalf("the database does not come back: %v", err)
		}
	}
}
