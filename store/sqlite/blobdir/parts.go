package blobdir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"tandem/identity"
	"tandem/store"
)

// A payload that is handed on with one field changed is a new value, and most of it is not new. So a large value that is at hand
// when it is put is kept in parts if it holds large values itself: each of these is a blob of its own, which is written once, and
// the value is a list of them with the text between them. It has the name and the content it would have as one file; the list
// stands in a file of that name with partsSuffix.
//
// The parts are found by their brackets and quotes. Whether they are JSON does not matter: the value is what they make when they
// are written one after the other.

const (
	partsSuffix = ".parts"
	// minPart is how large a part is at least, and how much of the value may be left between the parts.
	minPart = 32 << 10
	// maxParts is how many different parts a value has at most: each is a file to be synced when it is new.
	maxParts = 16
	// maxInParts is how large a value may be that is kept in parts; it is in memory while it is put.
	maxInParts = 256 << 20
)

// part is a piece of a value: text, or what a blob holds.
type part struct {
	Text []byte `json:"text,omitempty"`
	Hash string `json:"hash,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// partList is what the file of a value in parts holds.
type partList struct {
	Size  int64  `json:"size"`
	Parts []part `json:"parts"`
}

// span is a stretch of a value, from its first byte to the one behind its last.
type span struct{ from, to int }

// largeParts finds the innermost values of at least minPart bytes within a value, in order; none for a value that holds none but
// itself, and for what is not bracketed like JSON.
func largeParts(value []byte) []span {
	type open struct {
		at    int
		large bool // something in it is a part
	}
	var stack []open
	var parts []span
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			end := stringEnd(value, i)
			if end < 0 {
				return nil
			}
			if end-i >= minPart && len(stack) > 0 {
				parts = append(parts, span{i, end})
				stack[len(stack)-1].large = true
			}
			i = end - 1
		case '{', '[':
			stack = append(stack, open{at: i})
		case '}', ']':
			if len(stack) == 0 {
				return nil
			}
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				continue
			}
			if !top.large && i+1-top.at >= minPart {
				parts = append(parts, span{top.at, i + 1})
				top.large = true
			}
			stack[len(stack)-1].large = stack[len(stack)-1].large || top.large
		}
	}
	return parts
}

// stringEnd returns the place behind the string that begins at i, or -1.
func stringEnd(value []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(value[at:], '"')
		if n < 0 {
			return -1
		}
		at += n + 1
		slashes := 0
		for value[at-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
}

// knownParts are parts that were put lately: what is put again and again is compared, which is faster than to hash it and to ask
// the disk for it.
type knownParts struct {
	mu    sync.Mutex
	list  []knownPart // oldest first
	bytes int
}

type knownPart struct {
	workspace, hash string
	content         []byte
}

const maxKnownBytes = 16 << 20

func (k *knownParts) find(workspace string, content []byte) (hash string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.list {
		if one := &k.list[i]; one.workspace == workspace && bytes.Equal(one.content, content) {
			return one.hash, true
		}
	}
	return "", false
}

func (k *knownParts) addPart(one knownPart) {
	if len(one.content) > maxKnownBytes/4 {
		return
	}
	one.content = bytes.Clone(one.content)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list, k.bytes = append(k.list, one), k.bytes+len(one.content)
	for k.bytes > maxKnownBytes {
		k.bytes -= len(k.list[0].content)
		k.list = k.list[1:]
	}
}

// forgetPart says that a part is gone.
func (k *knownParts) forgetPart(workspace, hash string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.list {
		if one := &k.list[i]; one.workspace == workspace && one.hash == hash {
			k.bytes -= len(one.content)
			k.list = append(k.list[:i:i], k.list[i+1:]...)
			return
		}
	}
}

// putParts puts a value in parts. The caller has a turn. It is not ok for one that is better kept as one file; nothing is put then.
func (b *Dir) putParts(ctx context.Context, p identity.Principal, workspace string, value []byte) (blob store.Blob, ok bool, err error) {
	list := partList{Size: int64(len(value))}
	spans := largeParts(value)
	hashes, contents := make([]string, len(spans)), map[string][]byte{} // contents are those that may have to be written
	distinct, rest := map[string]bool{}, len(value)
	for i, s := range spans {
		content := value[s.from:s.to]
		hash, known := b.parts.find(workspace, content)
		if known {
			known = b.renewPart(p, hash)
		}
		if !known {
			sum := sha256.Sum256(content)
			hash = hex.EncodeToString(sum[:])
			contents[hash] = content
		}
		hashes[i], distinct[hash] = hash, true
		if rest -= len(content); len(distinct) > maxParts {
			return store.Blob{}, false, nil
		}
	}
	if len(spans) == 0 || rest > minPart {
		return store.Blob{}, false, nil
	}
	sum := sha256.Sum256(value)
	blob = store.Blob{Hash: hex.EncodeToString(sum[:]), Size: list.Size}
	if there, err := b.Stat(p, blob.Hash); err == nil && there == blob {
		final, err := blobPath(p, blob.Hash)
		if err != nil {
			return store.Blob{}, false, err
		}
		if err := b.renewAll(p, final, blob.Hash); err != nil {
			return store.Blob{}, false, fmt.Errorf("write blob: %w", err)
		}
		return blob, true, b.syncDirs(path.Dir(final))
	}
	at := 0
	for i, s := range spans {
		if content, unknown := contents[hashes[i]]; unknown {
			delete(contents, hashes[i])
			if _, err := b.putBlob(ctx, p, workspace, bytes.NewReader(content), "", alone{}); err != nil {
				return store.Blob{}, false, err
			}
			b.parts.addPart(knownPart{workspace, hashes[i], content})
		}
		list.Parts = append(list.Parts, part{Text: value[at:s.from]}, part{Hash: hashes[i], Size: int64(s.to - s.from)})
		at = s.to
	}
	list.Parts = append(list.Parts, part{Text: value[at:]})
	body, err := json.Marshal(list)
	if err != nil {
		return store.Blob{}, false, fmt.Errorf("write blob: %w", err)
	}
	_, err = b.putBlob(ctx, p, workspace, bytes.NewReader(body), blob.Hash, alone{})
	return blob, err == nil, err
}

// renewPart says that a part was put again, and whether it is there.
func (b *Dir) renewPart(p identity.Principal, hash string) bool {
	name, err := blobPath(p, hash)
	return err == nil && b.renew(name) == nil
}

// renewAll says that a value which is there was put again: the file of it, or the list of its parts with each of them.
func (b *Dir) renewAll(p identity.Principal, final, hash string) error {
	if err := b.renew(final); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list, err := b.readParts(final, hash)
	if err != nil {
		return err
	}
	for _, one := range list.Parts {
		if one.Hash != "" && !b.renewPart(p, one.Hash) {
			return blobError(one.Hash, fs.ErrNotExist)
		}
	}
	return b.renew(final + partsSuffix)
}

// readParts reads the list of a value's parts.
func (b *Dir) readParts(name, hash string) (list partList, err error) {
	body, err := b.root.ReadFile(name + partsSuffix)
	if err != nil {
		return list, blobError(hash, err)
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return list, fmt.Errorf("read blob %q: the list of its parts: %w", hash, err)
	}
	return list, nil
}

// PartsOf names the values that a value is kept in, each once; none for one that is a file of its own.
func (b *Dir) PartsOf(p identity.Principal, hash string) (names []string, err error) {
	name, err := blobPath(p, hash)
	if err != nil {
		return nil, err
	}
	if _, err := b.root.Stat(name + partsSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	list, err := b.readParts(name, hash)
	for _, one := range list.Parts {
		if one.Hash != "" && !slices.Contains(names, one.Hash) {
			names = append(names, one.Hash)
		}
	}
	return names, err
}

// openParts opens a value that is kept in parts.
func (b *Dir) openParts(p identity.Principal, name, hash string) (io.ReadCloser, store.Blob, error) {
	list, err := b.readParts(name, hash)
	if err != nil {
		return nil, store.Blob{}, err
	}
	out := &partsReader{}
	for _, one := range list.Parts {
		if one.Hash == "" {
			out.readers = append(out.readers, bytes.NewReader(one.Text))
			continue
		}
		name, err := blobPath(p, one.Hash)
		if err != nil {
			return nil, store.Blob{}, errors.Join(fmt.Errorf("read blob %q: %w", hash, err), out.Close())
		}
		f, err := b.root.Open(name)
		if err != nil {
			return nil, store.Blob{}, errors.Join(blobError(one.Hash, err), out.Close())
		}
		out.readers, out.files = append(out.readers, f), append(out.files, f)
	}
	out.Reader = io.MultiReader(out.readers...)
	return out, store.Blob{Hash: hash, Size: list.Size}, nil
}

// partsReader reads parts one after the other. All are open from the start, so that none can be missing in the middle.
type partsReader struct {
	io.Reader
	readers []io.Reader
	files   []fs.File
}

// Close implements [io.Closer].
func (r *partsReader) Close() (err error) {
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
