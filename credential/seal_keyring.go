package credential

import (
	"bytes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"

	"tandem/fault"
)

// KeyFile is the name of the file of master keys in the data directory.
const KeyFile = "master.key"

// maxKeyFile bounds what is read: some hundreds of keys.
const maxKeyFile = 64 << 10

const keyFileHead = `# Master keys of the credentials, oldest first; the last one seals, all of them open.
# Without this file no stored credential can be opened: back it up, apart from the database.
`

// keyID is derived from the key, so that a ring can tell an unknown key from damage and no key has to be numbered.
type keyID [idSize]byte

type masterKey struct {
	id   keyID
	aead cipher.AEAD
	// messages is what keys of messages are derived from.
	messages []byte
}

// Keyring holds the master keys, oldest first. It never changes after it was made and is safe for concurrent use.
type Keyring struct {
	keys []masterKey
}

// ParseKeyring reads keys as an operator gives them: each 32 bytes as hex or base64, separated by spaces, commas or
// line breaks, the newest last; the rest of a line after # is a comment.
func ParseKeyring(text string) (*Keyring, error) {
	data := []byte(text)
	defer clear(data)
	return parseKeys(data)
}

// OpenKeyFile reads the file of master keys in a data directory. A missing one is NotFound; [CreateKeyFile] makes it.
func OpenKeyFile(dir *os.Root) (*Keyring, error) {
	data, err := readKeyFile(dir)
	if err != nil {
		return nil, err
	}
	defer clear(data)
	ring, err := parseKeys(data)
	if err != nil {
		return nil, fault.Newf(fault.CodeOf(err), "%s: %s", KeyFile, fault.From(err).Message)
	}
	return ring, nil
}

// CreateKeyFile makes the file with one random key. Where the file exists it is left alone and read, so two processes
// that start at once end up with the same key. Call it only when nothing has been sealed yet: a new key opens nothing old.
func CreateKeyFile(dir *os.Root) (*Keyring, error) {
	if _, err := dir.Lstat(KeyFile); err == nil {
		return OpenKeyFile(dir)
	}
	err := writeKeyFile(dir, appendKey([]byte(keyFileHead)), func(temporary string) error {
		err := dir.Link(temporary, KeyFile)
		switch {
		case err == nil:
			return dir.Remove(temporary)
		case errors.Is(err, fs.ErrExist): // another process was first; its key counts
			return dir.Remove(temporary)
		default: // no hard links on this file system; the lock of the data directory has to keep others away
			return dir.Rename(temporary, KeyFile)
		}
	})
	if err != nil {
		return nil, err
	}
	return OpenKeyFile(dir)
}

// RotateKeyFile adds a new random key, which seals from now on. What the older keys sealed still opens; see
// [Keyring.Reseal].
func RotateKeyFile(dir *os.Root) (*Keyring, error) {
	if _, err := OpenKeyFile(dir); err != nil {
		return nil, err
	}
	data, err := readKeyFile(dir)
	if err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data, '\n')
	}
	err = writeKeyFile(dir, appendKey(data), func(temporary string) error { return dir.Rename(temporary, KeyFile) })
	if err != nil {
		return nil, err
	}
	return OpenKeyFile(dir)
}

// KeepNewestKey takes all keys but the newest out of the file. Call it when everything has been resealed: what the others have sealed no
// longer opens, unless somebody puts them back.
func KeepNewestKey(dir *os.Root) (*Keyring, error) {
	if _, err := OpenKeyFile(dir); err != nil {
		return nil, err
	}
	data, err := readKeyFile(dir)
	if err != nil {
		return nil, err
	}
	defer clear(data)
	var newest []byte
	for line := range bytes.Lines(data) {
		for _, word := range keyWords(line) {
			newest = word
		}
	}
	kept := append(append([]byte(keyFileHead), newest...), '\n')
	if err := removeLeftovers(dir); err != nil {
		return nil, err
	}
	err = writeKeyFile(dir, kept, func(temporary string) error { return dir.Rename(temporary, KeyFile) })
	if err != nil {
		return nil, err
	}
	return OpenKeyFile(dir)
}

// keyWords are the keys in a line, as they are written.
func keyWords(line []byte) [][]byte {
	line, _, _ = bytes.Cut(line, []byte("#"))
	return bytes.FieldsFunc(line, func(r rune) bool { return r <= ' ' || r == ',' })
}

// Newest is a ring with the key that seals alone.
func (k *Keyring) Newest() *Keyring { return &Keyring{keys: k.keys[len(k.keys)-1:]} }

// Keys lists the ids of the keys, oldest first. An id tells nothing about its key.
func (k *Keyring) Keys() []string {
	ids := make([]string, len(k.keys))
	for i, key := range k.keys {
		ids[i] = hex.EncodeToString(key.id[:])
	}
	return ids
}

// Format prints the ids of the keys, whatever the verb: a ring that ends up in a log line gives nothing away.
func (k *Keyring) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "keyring%v", k.Keys())
}

func (k *Keyring) newest() masterKey { return k.keys[len(k.keys)-1] }

func (k *Keyring) find(id keyID) (masterKey, bool) {
	i := slices.IndexFunc(k.keys, func(key masterKey) bool { return key.id == id })
	if i < 0 {
		return masterKey{}, false
	}
	return k.keys[i], true
}

func parseKeys(data []byte) (*Keyring, error) {
	ring := &Keyring{}
	for line := range bytes.Lines(data) {
		for _, word := range keyWords(line) {
			key, err := decodeKey(word, len(ring.keys)+1)
			if err != nil {
				return nil, err
			}
			master, err := newMasterKey(key)
			clear(key)
			if err != nil {
				return nil, err
			}
			if _, twice := ring.find(master.id); twice {
				return nil, fault.Newf(fault.Invalid, "master key %d is given twice; each key once, the newest last", len(ring.keys)+1)
			}
			ring.keys = append(ring.keys, master)
		}
	}
	if len(ring.keys) == 0 {
		return nil, fault.New(fault.Invalid, "no master key; give 32 random bytes as base64 or hex, for instance from: openssl rand -base64 32")
	}
	return ring, nil
}

// decodeKey never quotes what it was given.
func decodeKey(word []byte, number int) ([]byte, error) {
	if len(word) == hex.EncodedLen(keySize) {
		key := make([]byte, keySize)
		if _, err := hex.Decode(key, word); err == nil {
			return checkKey(key, number)
		}
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		key := make([]byte, encoding.DecodedLen(len(word)))
		if n, err := encoding.Decode(key, word); err == nil && n == keySize {
			return checkKey(key[:n], number)
		}
		clear(key)
	}
	return nil, fault.Newf(fault.Invalid, "master key %d is not 32 bytes as base64 or hex; make one with: openssl rand -base64 32", number)
}

// checkKey refuses what is plainly a placeholder: one byte all over.
func checkKey(key []byte, number int) ([]byte, error) {
	if bytes.Count(key, key[:1]) == len(key) {
		return nil, fault.Newf(fault.Invalid, "master key %d is one byte repeated, not a random key; make one with: openssl rand -base64 32", number)
	}
	return key, nil
}

func newMasterKey(key []byte) (masterKey, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return masterKey{}, err
	}
	return masterKey{id: keyID(derive(key, []byte("tandem master key id"))[:idSize]), aead: aead, messages: derive(key, []byte("tandem messages"))}, nil
}

// derive makes a key of another, for one purpose.
func derive(key []byte, purpose ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range purpose {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// appendKey appends a random key as a line.
func appendKey(data []byte) []byte {
	key := make([]byte, keySize)
	defer clear(key)
	rand.Read(key)
	return append(base64.StdEncoding.AppendEncode(data, key), '\n')
}

func readKeyFile(dir *os.Root) ([]byte, error) {
	file, err := dir.Open(KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Newf(fault.NotFound, "%s is missing in the data directory; restore it from a backup, since stored credentials open with no other", KeyFile)
	}
	if err != nil {
		return nil, fault.Newf(fault.Internal, "open %s: %w", KeyFile, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fault.Newf(fault.Internal, "look at %s: %w", KeyFile, err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fault.Newf(fault.Forbidden, "%s can be read by others (mode %04o); make it private with: chmod 600 %s", KeyFile, mode, KeyFile)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err != nil {
		return nil, fault.Newf(fault.Internal, "read %s: %w", KeyFile, err)
	}
	if len(data) > maxKeyFile {
		return nil, fault.Newf(fault.Invalid, "%s is larger than %d bytes; it holds keys only", KeyFile, maxKeyFile)
	}
	return data, nil
}

// temporaryName is how long the end of the name of a temporary file is.
const temporaryName = 8

// writeKeyFile writes data to a temporary file and puts it in place, so that the key file is never half written: what
// was sealed with a key that is lost is lost too.
func writeKeyFile(dir *os.Root, data []byte, place func(temporary string) error) error {
	defer clear(data)
	temporary := KeyFile + "." + rand.Text()[:temporaryName]
	if err := writeSynced(dir, temporary, data); err != nil {
		return fault.Newf(fault.Internal, "write %s: %w", KeyFile, errors.Join(err, removeIfThere(dir, temporary)))
	}
	if err := place(temporary); err != nil {
		return fault.Newf(fault.Internal, "put %s in place: %w", KeyFile, errors.Join(err, removeIfThere(dir, temporary)))
	}
	if err := syncDirectory(dir); err != nil {
		return fault.Newf(fault.Internal, "write the data directory: %w", err)
	}
	return nil
}

// removeLeftovers removes temporary files of writers that died: there are keys in them. Nobody else may be writing.
func removeLeftovers(dir *os.Root) error {
	list, err := fs.Glob(dir.FS(), KeyFile+".*")
	for _, name := range list {
		if len(name) == len(KeyFile)+1+temporaryName {
			err = errors.Join(err, removeIfThere(dir, name))
		}
	}
	if err != nil {
		return fault.Newf(fault.Internal, "remove what an earlier change of %s has left: %w", KeyFile, err)
	}
	return nil
}

func writeSynced(dir *os.Root, name string, data []byte) error {
	file, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func removeIfThere(dir *os.Root, name string) error {
	if err := dir.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDirectory(dir *os.Root) error {
	if runtime.GOOS == "windows" { // directories cannot be synced there, and need not be
		return nil
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
