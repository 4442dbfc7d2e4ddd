package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/identity"
	"tandem/store/relational/blobnames"
)

// large is a value of several pieces.
func large(seed uint64) []byte {
	value := make([]byte, 3<<20+17)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(value)
	return value
}

// counts reads how many rows the tables of large values have: named ones, pieces, values under way.
func counts(t *testing.T, url string) (n [3]int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	check(t, conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM blobs), (SELECT count(*) FROM blob_pieces), (SELECT count(*) FROM blob_uploads)`).Scan(&n[0], &n[1], &n[2]))
	return n
}

// heldReader gives a part, says so, and then waits for the rest.
type heldReader struct {
	first io.Reader
	held  chan struct{}
	rest  <-chan error
}

func (r *heldReader) Read(into []byte) (int, error) {
	if n, err := r.first.Read(into); n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	if r.held != nil {
		close(r.held)
		r.held = nil
	}
	return 0, <-r.rest
}

// TestBlobs_Pieces puts values that come in pieces: twice the same, one whose source breaks, one that nobody goes on with.
func TestBlobs_Pieces(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := open(t, url)
	p := identity.Principal{Workspace: "ws", User: "ann"}
	blobs := db.Stores().Blobs
	value := large(1)
	for range 2 {
		blob, err := blobs.Put(t.Context(), p, iotestReader{bytes.NewReader(value)})
		check(t, err)
		r, _, err := blobs.Get(t.Context(), p, blob.Hash)
		check(t, err)
		got, err := io.ReadAll(r)
		check(t, err)
		check(t, r.Close())
		if !bytes.Equal(got, value) {
			t.Fatalf("read %d bytes that differ from the %d written", len(got), len(value))
		}
		if n := counts(t, url); n != [3]int{1, 4, 0} {
			t.Errorf("%v rows, want one value in four pieces", n)
		}
	}
	broken := errors.New("the source broke")
	if _, err := blobs.Put(t.Context(), p, io.MultiReader(bytes.NewReader(large(2)), failingReader{broken})); !errors.Is(err, broken) {
		t.Errorf("a source that breaks: %v", err)
	}
	if n := counts(t, url); n != [3]int{1, 4, 0} {
		t.Errorf("%v rows after a source that broke", n)
	}

	rest := make(chan error, 1)
	under := &heldReader{first: bytes.NewReader(large(3)), held: make(chan struct{}), rest: rest}
	held, ended := under.held, make(chan error, 1)
	go func() { // it ends when the source does
		_, err := blobs.Put(t.Context(), p, under)
		ended <- err
	}()
	<-held
	if n := counts(t, url); n != [3]int{1, 7, 1} {
		t.Errorf("%v rows while a value is put", n)
	}
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	open(t, url) // takes over; what is under way is young
	if n := counts(t, url); n != [3]int{1, 7, 1} {
		t.Errorf("%v rows while a value is put, after another process has come", n)
	}
	_, err = conn.Exec(t.Context(), `UPDATE blob_uploads SET touched = touched - 3600000`)
	check(t, err)
	open(t, url)
	if n := counts(t, url); n != [3]int{1, 4, 0} {
		t.Errorf("%v rows after a value was given up", n)
	}
	rest <- io.EOF
	if err := <-ended; err == nil {
		t.Error("a value was put that had been given up")
	}
}

// iotestReader hides that a reader is more than one.
type iotestReader struct{ io.Reader }

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestBlobs_Removal removes values that nothing names, with their pieces, and none that was put since.
func TestBlobs_Removal(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := open(t, url)
	p := identity.Principal{Workspace: "ws", User: "ann"}
	put := func(value []byte) string {
		t.Helper()
		blob, err := db.Stores().Blobs.Put(t.Context(), p, bytes.NewReader(value))
		check(t, err)
		return blob.Hash
	}
	upkeep := db.BlobUpkeep()
	small, big := put([]byte("small")), put(large(1))
	names := put([]byte(`{"a":"` + strings.Repeat(" ", 2<<20) + big + `"}`)) // behind the first piece
	var all []string
	size := int64(0)
	check(t, upkeep.Each(t.Context(), "ws", func(name string, n int64, _ time.Time) error {
		all, size = append(all, name), size+n
		return nil
	}))
	want := []string{small, big, names}
	slices.Sort(want)
	if !slices.Equal(all, want) || size != int64(5+3<<20+17+2<<20+64+8) {
		t.Errorf("each: %d values of %d bytes", len(all), size)
	}
	found := blobnames.Names{}
	check(t, upkeep.Names(t.Context(), "ws", names, found))
	check(t, upkeep.Names(t.Context(), "ws", strings.Repeat("0", 64), found)) // one that is gone
	if len(found) != 1 || !found[big] {
		t.Errorf("names: %v", found)
	}
	if n, _, err := upkeep.Remove("ws", want, time.Now().Add(-time.Minute)); n != 0 || err != nil {
		t.Errorf("removed %d that are young: %v", n, err)
	}
	if n, _, err := upkeep.Remove("other", want, time.Now().Add(time.Minute)); n != 0 || err != nil {
		t.Errorf("removed %d of another workspace: %v", n, err)
	}
	n, size, err := upkeep.Remove("ws", []string{big, names}, time.Now().Add(time.Minute))
	if n != 2 || size != int64(3<<20+17+2<<20+64+8) || err != nil {
		t.Errorf("removed %d of %d bytes: %v", n, size, err)
	}
	if n := counts(t, url); n != [3]int{1, 0, 0} {
		t.Errorf("%v rows are left", n)
	}
	if _, _, err := db.Stores().Blobs.Get(t.Context(), p, big); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a value that was removed: %v", err)
	}
}
