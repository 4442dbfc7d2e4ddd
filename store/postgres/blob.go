package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational/blobnames"
)

// blobs keeps large values in tables. A small one is written with its row. One that is larger comes in pieces, each of which is on
// disk before the next is read, so that no connection is held and little memory is used while its source takes its time; its row is
// written last, so that nobody sees a part of it.
type blobs struct{ db *DB }

// pieceSize is how large a piece is, and a value that is written with its row at most.
const pieceSize = 1 << 20

// abandoned is how long nothing may come of a value that is being put. Its pieces are removed then.
const abandoned = time.Hour

// Put implements [store.Blobs].
func (b blobs) Put(ctx context.Context, p identity.Principal, r io.Reader) (store.Blob, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Blob{}, err
	}
	if err := identity.CheckWorkspace(workspace); err != nil {
		return store.Blob{}, err
	}
	u := &upload{blobs: b, workspace: workspace}
	blob, err := u.put(ctx, r)
	if err != nil && u.pieces != 0 {
		// As far as it works: what is left is removed with what others have abandoned.
		err = errors.Join(err, u.discard(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return store.Blob{}, fmt.Errorf("write blob: %w", err)
	}
	return blob, nil
}

// upload is a value that is being put.
type upload struct {
	blobs
	workspace string
	pieces    int64 // the number of its pieces; 0: it has none
	parts     int64
}

func (u *upload) put(ctx context.Context, r io.Reader) (store.Blob, error) {
	hash, size := sha256.New(), int64(0)
	piece := make([]byte, 0, 4<<10)
	for {
		var err error
		if piece, err = readPiece(ctx, r, piece[:0]); err != nil && !errors.Is(err, io.EOF) {
			return store.Blob{}, err
		}
		last := err != nil
		hash.Write(piece)
		size += int64(len(piece))
		if last {
			break
		}
		if err := u.addPiece(ctx, piece); err != nil {
			return store.Blob{}, err
		}
	}
	blob := store.Blob{Hash: hex.EncodeToString(hash.Sum(nil)), Size: size}
	return blob, u.name(ctx, blob, piece)
}

// readPiece reads until a piece is full or there is no more, which is io.EOF with what there was.
func readPiece(ctx context.Context, r io.Reader, piece []byte) ([]byte, error) {
	for len(piece) < pieceSize {
		if ctx.Err() != nil {
			return piece, context.Cause(ctx)
		}
		if len(piece) == cap(piece) {
			grown := make([]byte, len(piece), min(4*cap(piece), pieceSize))
			copy(grown, piece)
			piece = grown
		}
		n, err := r.Read(piece[len(piece):cap(piece)])
		piece = piece[:len(piece)+n]
		if err != nil {
			return piece, err
		}
	}
	return piece, nil
}

// addPiece writes a piece.
func (u *upload) addPiece(ctx context.Context, piece []byte) error {
	pieces, parts := u.pieces, u.parts
	err := u.db.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		now := time.Now().UnixMilli()
		if u.pieces == 0 {
			if err := tx.QueryRow(ctx, `INSERT INTO blob_uploads (workspace_id, touched) VALUES ($1, $2) RETURNING pieces`, u.workspace, now).Scan(&pieces); err != nil {
				return err
			}
		} else if tag, err := tx.Exec(ctx, `UPDATE blob_uploads SET touched = $2 WHERE pieces = $1`, pieces, now); err != nil {
			return err
		} else if tag.RowsAffected() == 0 {
			return tookTooLong()
		}
		_, err := tx.Exec(ctx, `INSERT INTO blob_pieces (pieces, part, body) VALUES ($1, $2, $3)`, pieces, parts+1, piece)
		return err
	})
	if err != nil {
		return err
	}
	u.pieces, u.parts = pieces, parts+1
	return nil
}

func tookTooLong() error {
	return fault.Newf(fault.Timeout, "nothing came of the value for %s, and it was given up; send it again", abandoned)
}

// name makes the value visible, with the rest of it. One that is there already is put again: its pieces stay, and these go.
func (u *upload) name(ctx context.Context, blob store.Blob, rest []byte) error {
	if u.pieces != 0 && len(rest) > 0 {
		if err := u.addPiece(ctx, rest); err != nil {
			return err
		}
	}
	return u.db.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		now := time.Now().UnixMilli()
		if u.pieces == 0 {
			// Most values that are put again are small and are there: these need not be sent.
			tag, err := tx.Exec(ctx, `UPDATE blobs SET put = greatest(put, $3) WHERE workspace_id = $1 AND hash = $2`, u.workspace, blob.Hash, now)
			if err != nil || tag.RowsAffected() > 0 {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO blobs (workspace_id, hash, size, put, body) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (workspace_id, hash) DO UPDATE SET put = greatest(blobs.put, excluded.put)`, u.workspace, blob.Hash, blob.Size, now, bytes(rest))
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM blob_uploads WHERE pieces = $1`, u.pieces)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return tookTooLong()
		}
		var kept *int64
		if err := tx.QueryRow(ctx, `INSERT INTO blobs (workspace_id, hash, size, put, pieces) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (workspace_id, hash) DO UPDATE SET put = greatest(blobs.put, excluded.put) RETURNING pieces`,
			u.workspace, blob.Hash, blob.Size, now, u.pieces).Scan(&kept); err != nil {
			return err
		}
		if kept == nil || *kept != u.pieces {
			_, err = tx.Exec(ctx, `DELETE FROM blob_pieces WHERE pieces = $1`, u.pieces)
		}
		return err
	})
}

// discard removes what has come of a value that is not put. One that has its row by now is not touched: the commit whose answer was
// lost may have been made.
func (u *upload) discard(ctx context.Context) error {
	return u.db.write(ctx, func(ctx context.Context, tx pgx.Tx) error { return discard(ctx, tx, `pieces = $1`, u.pieces) })
}

// discard removes uploads with their pieces.
func discard(ctx context.Context, tx pgx.Tx, which string, arg int64) error {
	_, err := tx.Exec(ctx, `WITH gone AS (DELETE FROM blob_uploads WHERE `+which+` RETURNING pieces)
		DELETE FROM blob_pieces WHERE pieces IN (SELECT pieces FROM gone)`, arg)
	return err
}

// discardAbandoned removes what processes have left that died while they put a value.
func discardAbandoned(ctx context.Context, tx pgx.Tx) error {
	return discard(ctx, tx, `touched < $1`, time.Now().Add(-abandoned).UnixMilli())
}

// find reads the row of a value, with what of it is in the row.
func (b blobs) find(ctx context.Context, p identity.Principal, hash string) (blob store.Blob, body []byte, pieces int64, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return blob, nil, 0, err
	}
	if err := store.CheckBlob(hash); err != nil {
		return blob, nil, 0, err
	}
	type row struct {
		size   int64
		body   []byte
		pieces *int64
	}
	all, err := query(ctx, b.db, func(r pgx.CollectableRow) (one row, err error) { return one, r.Scan(&one.size, &one.body, &one.pieces) },
		`SELECT size, body, pieces FROM blobs WHERE workspace_id = $1 AND hash = $2`, workspace, hash)
	if err != nil {
		return blob, nil, 0, err
	}
	if len(all) == 0 {
		return blob, nil, 0, store.NotFound("blob", hash)
	}
	if all[0].pieces != nil {
		pieces = *all[0].pieces
	}
	return store.Blob{Hash: hash, Size: all[0].size}, all[0].body, pieces, nil
}

// Get implements [store.Blobs].
func (b blobs) Get(ctx context.Context, p identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	blob, body, pieces, err := b.find(ctx, p, hash)
	if err != nil {
		return nil, store.Blob{}, err
	}
	return &blobReader{blobs: b, ctx: ctx, hash: hash, rest: body, left: blob.Size - int64(len(body)), pieces: pieces}, blob, nil
}

// blobReader reads a value piece by piece.
type blobReader struct {
	blobs
	ctx    context.Context // that of the call which opened it
	hash   string
	rest   []byte // of the piece that was read last
	left   int64  // how much there is behind it
	pieces int64
	part   int64
	closed bool
}

// Read implements [io.Reader].
func (r *blobReader) Read(into []byte) (int, error) {
	if r.closed {
		return 0, errors.New("the value has been closed")
	}
	for len(r.rest) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		all, err := query(r.ctx, r.db, func(row pgx.CollectableRow) (body []byte, err error) { return body, row.Scan(&body) },
			`SELECT body FROM blob_pieces WHERE pieces = $1 AND part = $2`, r.pieces, r.part+1)
		if err != nil {
			return 0, fmt.Errorf("read blob %q: %w", r.hash, err)
		}
		if len(all) == 0 || len(all[0]) == 0 || int64(len(all[0])) > r.left {
			return 0, store.NotFound("blob", r.hash) // it was removed meanwhile
		}
		r.rest, r.part, r.left = all[0], r.part+1, r.left-int64(len(all[0]))
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (r *blobReader) Close() error {
	r.closed, r.rest = true, nil
	return nil
}

// Stat implements [store.Blobs].
func (b blobs) Stat(ctx context.Context, p identity.Principal, hash string) (store.Blob, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Blob{}, err
	}
	if err := store.CheckBlob(hash); err != nil {
		return store.Blob{}, err
	}
	all, err := query(ctx, b.db, func(r pgx.CollectableRow) (size int64, err error) { return size, r.Scan(&size) },
		`SELECT size FROM blobs WHERE workspace_id = $1 AND hash = $2`, workspace, hash)
	if err != nil {
		return store.Blob{}, err
	}
	if len(all) == 0 {
		return store.Blob{}, store.NotFound("blob", hash)
	}
	return store.Blob{Hash: hash, Size: all[0]}, nil
}

// blobUpkeep is the large values as whoever removes them sees them.
type blobUpkeep struct{ blobs }

// Each calls back for each value of a workspace, with what it takes up and when it was last put, until the function fails or the
// context ends.
func (b blobUpkeep) Each(ctx context.Context, workspace string, each func(name string, size int64, put time.Time) error) error {
	type row struct {
		name      string
		size, put int64
	}
	for after, n := "", pageSize; n == pageSize; {
		page, err := query(ctx, b.db,
			func(r pgx.CollectableRow) (one row, err error) { return one, r.Scan(&one.name, &one.size, &one.put) },
			`SELECT hash, size, put FROM blobs WHERE workspace_id = $1 AND hash > $2 ORDER BY hash LIMIT $3`, workspace, after, pageSize)
		if err != nil {
			return err
		}
		n = len(page)
		for _, one := range page {
			after = one.name
			if err := each(one.name, one.size, time.UnixMilli(one.put)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Names finds everything in a value that looks like the name of another.
func (b blobUpkeep) Names(ctx context.Context, workspace, name string, into blobnames.Names) error {
	return b.look(ctx, workspace, name, func(text []byte) { into.Find(text) })
}

// Named finds the names of a set that stand in a value.
func (b blobUpkeep) Named(ctx context.Context, workspace, name string, among blobnames.Names, found func(name string)) error {
	return b.look(ctx, workspace, name, func(text []byte) { among.FindAmong(found, text) })
}

func (b blobUpkeep) look(ctx context.Context, workspace, name string, each func(text []byte)) error {
	r, _, err := b.Get(ctx, identity.System(workspace), name)
	if err == nil {
		err = errors.Join(blobnames.EachPiece(ctx, r, each), r.Close())
	}
	if fault.CodeOf(err) == fault.NotFound {
		return nil // it is gone
	}
	return err
}

// Stat says how large a value is.
func (b blobUpkeep) Stat(p identity.Principal, name string) (store.Blob, error) {
	return b.blobs.Stat(context.Background(), p, name)
}

// Remove removes values that nothing names, and returns how many are gone, with what they took up. One that was put since young stays:
// what names it may be about to be written.
func (b blobUpkeep) Remove(workspace string, names []string, young time.Time) (removed int, size int64, err error) {
	err = b.db.write(context.Background(), func(ctx context.Context, tx pgx.Tx) error {
		removed, size = 0, 0
		rows, err := tx.Query(ctx, `WITH gone AS (DELETE FROM blobs WHERE workspace_id = $1 AND hash = ANY($2) AND put <= $3 RETURNING size, pieces),
				emptied AS (DELETE FROM blob_pieces WHERE pieces IN (SELECT pieces FROM gone))
			SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone`, workspace, names, young.UnixMilli())
		if err != nil {
			return err
		}
		_, err = pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) { return struct{}{}, r.Scan(&removed, &size) })
		return err
	})
	return removed, size, err
}
