package pages

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"fmt"

	"tandem/store/relational"
)

// What is removed from a page of the database is overwritten with zeros (secure_delete). But a row that SQLite has moved to another page,
// because its own was full, leaves its bytes behind in the part of the page that is not in use. So that nothing of a removed row is left,
// these parts are overwritten, too: page by page, by transactions like any other (docs/decisions/0016).

// The kinds of pages that hold rows, by their first byte, and the places of what their headers say.
const (
	innerIndex, innerTable, leafIndex, leafTable = 2, 5, 10, 13

	freeBlockAt, cellsAt, contentAt = 1, 3, 5
)

// blankUnused overwrites what is not in use in a page that holds rows, and says whether there was anything. Offset is where the page's
// header begins: 100 in the first page of a database, 0 in others. A page that is not as it should be is left alone.
func blankUnused(page []byte, offset int) (changed bool) {
	size := 8
	switch page[offset] {
	case innerIndex, innerTable:
		size = 12
	case leafIndex, leafTable:
	default:
		return false
	}
	number := func(at int) int { return int(binary.BigEndian.Uint16(page[offset+at:])) }
	cells, content := number(cellsAt), number(contentAt)
	if content == 0 {
		content = 1 << 16
	}
	gap := offset + size + 2*cells
	if gap > content || content > len(page) {
		return false
	}
	for i := range cells {
		if at := int(binary.BigEndian.Uint16(page[offset+size+2*i:])); at < content || at >= len(page) {
			return false
		}
	}
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if page[i] != 0 {
				page[i], changed = 0, true
			}
		}
	}
	var blocks [][2]int
	for at, before := number(freeBlockAt), 0; at != 0; {
		if at <= before || at < content || at+4 > len(page) {
			return false
		}
		next, length := int(binary.BigEndian.Uint16(page[at:])), int(binary.BigEndian.Uint16(page[at+2:]))
		if length < 4 || at+length > len(page) || next != 0 && next < at+length {
			return false
		}
		blocks = append(blocks, [2]int{at + 4, at + length})
		at, before = next, at
	}
	blank(gap, content)
	for _, b := range blocks {
		blank(b[0], b[1])
	}
	return changed
}

// pageMap is where a database that can become smaller says what each page is: pages of this map stand before those that they tell of.
type pageMap struct{ pageSize, perMap int64 }

func newPageMap(pageSize int64) pageMap { return pageMap{pageSize, pageSize/5 + 1} }

// pending is the page that SQLite never uses, since locks are at that place.
func (m pageMap) pending() int64 { return 1<<30/m.pageSize + 1 }

// of is the page of the map that tells of a page.
func (m pageMap) of(page int64) int64 {
	at := (page-2)/m.perMap*m.perMap + 2
	if at == m.pending() {
		at++
	}
	return at
}

// holdsRows says, by the map, that a page is one of a tree of rows.
func (m pageMap) holdsRows(page int64, read func(page int64) ([]byte, error)) (bool, error) {
	if page == 1 {
		return true, nil
	}
	of := m.of(page)
	if page <= of || page == m.pending() {
		return false, nil
	}
	text, err := read(of)
	if err != nil {
		return false, err
	}
	const root, tree = 1, 5
	at := 5 * (page - of - 1)
	if at+5 > int64(len(text)) {
		return false, fmt.Errorf("page %d has no place in the map of pages", page)
	}
	return text[at] == root || text[at] == tree, nil
}

// Bounds of one step: how many pages are looked at, and how many are written or given back.
const (
	pagesLooked  = 1024
	pagesWritten = 64
	pagesGiven   = 256
)

// blankPages overwrites what is not in use in all pages.
func (x *Pages) blankPages(ctx context.Context) error {
	sizes, err := relational.QueryOne(ctx, x.db, errNothing, `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size`,
		func(s relational.Scanner) (v [2]int64, err error) { return v, s.Scan(&v[0], &v[1]) })
	if err != nil {
		return err
	}
	pages := newPageMap(sizes[1])
	for first := int64(1); first <= sizes[0]; first += pagesLooked {
		found, err := relational.Query(ctx, x.db, `SELECT pgno, data FROM sqlite_dbpage WHERE pgno BETWEEN ? AND ?`, func(s relational.Scanner) (pgno int64, err error) {
			var page []byte
			if err := s.Scan(&pgno, &page); err != nil {
				return 0, err
			}
			if !blankUnused(page, headerOf(pgno)) {
				pgno = 0
			}
			return pgno, nil
		}, first, min(first+pagesLooked-1, sizes[0]))
		if err != nil {
			return err
		}
		var list []int64
		for _, pgno := range found {
			if pgno != 0 {
				list = append(list, pgno)
			}
		}
		for len(list) > 0 {
			part := list[:min(len(list), pagesWritten)]
			list = list[len(part):]
			if err := x.db.Write(ctx, func(w relational.Transaction) error { return blankIn(w, pages, part) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// headerOf is where the header of a page begins.
func headerOf(pgno int64) int {
	if pgno == 1 {
		return 100
	}
	return 0
}

// blankIn overwrites what is not in use in pages, as they are now.
func blankIn(w relational.Transaction, pages pageMap, list []int64) error {
	read := func(pgno int64) ([]byte, error) {
		var row [1]driver.Value
		found, err := w.Row(row[:], `SELECT data FROM sqlite_dbpage WHERE pgno = ?`, pgno)
		page, _ := row[0].([]byte)
		if err == nil && (!found || int64(len(page)) != pages.pageSize) {
			return nil, nil // it was given back
		}
		return page, err
	}
	changed := false
	for _, pgno := range list {
		page, err := read(pgno)
		if err != nil {
			return err
		}
		if page == nil {
			continue
		}
		rows, err := pages.holdsRows(pgno, read)
		if err != nil {
			return err
		}
		if !rows || !blankUnused(page, headerOf(pgno)) {
			continue
		}
		if _, err := w.Exec(`UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?`, page, pgno); err != nil {
			return err
		}
		w.Grow(len(page))
		changed = true
	}
	if !changed {
		w.Unchanged()
	}
	return nil
}

// giveBack moves free pages to the end of the file and cuts it, until no more than so many are free.
func (x *Pages) giveBack(ctx context.Context, free float64) error {
	for {
		v, err := relational.QueryOne(ctx, x.db, errNothing, `SELECT freelist_count, page_count, page_size FROM pragma_freelist_count, pragma_page_count, pragma_page_size`, func(s relational.Scanner) (v [3]int64, err error) {
			return v, s.Scan(&v[0], &v[1], &v[2])
		})
		if err != nil {
			return err
		}
		give := v[0] - int64(free*float64(v[1]))
		if give <= 0 {
			return nil
		}
		before := v[0]
		if err := x.db.Write(ctx, func(w relational.Transaction) error {
			// The number is a part of the statement, and always the same: statements stay prepared.
			w.Grow(pagesGiven * int(v[2]))
			_, err := w.Exec(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, pagesGiven))
			return err
		}); err != nil {
			return err
		}
		now, err := relational.QueryOne(ctx, x.db, errNothing, `SELECT freelist_count FROM pragma_freelist_count`, scanInt)
		if err != nil || now >= before {
			return err // others have made as many free meanwhile, or the file cannot become smaller
		}
	}
}
