// Package credential keeps secrets secret: it seals them for storage ([Keyring]), says what a credential of each type
// consists of ([Types], [Validate]), and takes them out of everything that leaves ([Redactor]).
//
// It stores nothing and talks to nobody: package store keeps the sealed bytes, the server decides who may write them,
// and the kinds that need a secret use what was opened. Packages above the node runtime and the stores may import it.
package credential

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"

	"tandem/fault"
)

// MaxSize is the most that is sealed as one secret: enough for a service description, too little to fill a database.
const MaxSize = 1 << 20

// A sealed secret, version 1:
//
//	magic 3 | version 1 | key id 8 | data key under the master key 60 | plaintext under the data key, 28 longer than it
//
// Both ciphertexts are AES-256-GCM: nonce 12, text, tag 16. The additional data of both is the bound context; that of
// the first also covers everything before it. The second does not cover the key id, so that [Keyring.Reseal] replaces
// the key without touching the secret.
const (
	magic       = "tsc"
	version     = 1
	idSize      = 8
	keySize     = 32
	overhead    = 12 + 16
	headerSize  = len(magic) + 1 + idSize
	wrappedSize = keySize + overhead
	minSealed   = headerSize + wrappedSize + overhead
)

// Reasons why sealed bytes do not open, as the fact "reason" of the error.
const (
	reasonFormat  = "format"
	reasonVersion = "version"
	reasonKey     = "unknown_key"
	reasonContext = "context"
	reasonDamaged = "damaged"
)

// Context names the one place where a sealed credential belongs. Sealed bytes copied to a row of another workspace, id
// or type do not open there.
func Context(workspace, id, typeName string) []byte {
	out := []byte("tandem credential")
	for _, part := range []string{workspace, id, typeName} {
		// Lengths, so that moving a letter from one part to the next makes another context.
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return out
}

// Seal encrypts plaintext under a fresh data key, that key under the newest master key, and binds both to the context.
// The caller keeps and clears plaintext.
func (k *Keyring) Seal(plaintext, context []byte) ([]byte, error) {
	if len(plaintext) > MaxSize {
		return nil, fault.Newf(fault.TooLarge, "a credential of %d bytes is too large; the limit is %d", len(plaintext), MaxSize)
	}
	dataKey := make([]byte, keySize)
	defer clear(dataKey)
	rand.Read(dataKey) // never fails: the runtime ends the process instead
	aead, err := newAEAD(dataKey)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, minSealed+len(plaintext))
	out = k.wrap(out, dataKey, context)
	return append(out, aead.Seal(nil, nil, plaintext, dataContext(context))...), nil
}

// Open decrypts what Seal made, if the context is the same and the ring has the key. The caller should clear the result
// when it has been used. The error says what is wrong and nothing about the secret.
func (k *Keyring) Open(sealed, context []byte) ([]byte, error) {
	dataKey, err := k.unwrap(sealed, context)
	if err != nil {
		return nil, err
	}
	defer clear(dataKey)
	aead, err := newAEAD(dataKey)
	if err != nil {
		return nil, err
	}
	plaintext, err := aead.Open(nil, nil, sealed[headerSize+wrappedSize:], dataContext(context))
	if err != nil {
		return nil, unopenable(reasonDamaged, "the sealed credential is damaged; enter its data again")
	}
	return plaintext, nil
}

// Reseal puts what was sealed under an older key under the newest one, without decrypting the secret itself, and says
// whether anything had to change. The old key can leave the ring when every row has been resealed.
func (k *Keyring) Reseal(sealed, context []byte) ([]byte, bool, error) {
	dataKey, err := k.unwrap(sealed, context)
	if err != nil {
		return nil, false, err
	}
	defer clear(dataKey)
	if keyID(sealed[len(magic)+1:headerSize]) == k.newest().id {
		return sealed, false, nil
	}
	out := make([]byte, 0, len(sealed))
	out = k.wrap(out, dataKey, context)
	return append(out, sealed[headerSize+wrappedSize:]...), true, nil
}

// wrap appends the header and the data key under the newest master key.
func (k *Keyring) wrap(out, dataKey, context []byte) []byte {
	master := k.newest()
	out = append(out, magic...)
	out = append(out, version)
	out = append(out, master.id[:]...)
	return append(out, master.aead.Seal(nil, nil, dataKey, wrapContext(out[:headerSize], context))...)
}

// unwrap checks the header and returns the data key, which the caller clears.
func (k *Keyring) unwrap(sealed, context []byte) ([]byte, error) {
	switch {
	case len(sealed) < len(magic)+1 || !bytes.HasPrefix(sealed, []byte(magic)):
		return nil, unopenable(reasonFormat, "this is not a sealed credential")
	case sealed[len(magic)] != version:
		return nil, unopenable(reasonVersion, "the credential was sealed in format %d and this version reads format %d; use the version that sealed it, or a newer one", sealed[len(magic)], version)
	case len(sealed) < minSealed:
		return nil, unopenable(reasonDamaged, "the sealed credential is cut off after %d bytes; enter its data again", len(sealed))
	case len(sealed) > minSealed+MaxSize:
		return nil, unopenable(reasonDamaged, "the sealed credential has %d bytes, more than are ever sealed; enter its data again", len(sealed))
	}
	header := sealed[:headerSize]
	master, ok := k.find(keyID(header[len(magic)+1:]))
	if !ok {
		return nil, unopenable(reasonKey, "the credential was sealed with master key %x, which this instance does not have; add that key, or enter the credential's data again", header[len(magic)+1:])
	}
	dataKey, err := master.aead.Open(nil, nil, sealed[headerSize:headerSize+wrappedSize], wrapContext(header, context))
	if err != nil {
		return nil, unopenable(reasonContext, "the sealed credential was made for another workspace, id or type, or is damaged; enter its data again")
	}
	return dataKey, nil
}

func unopenable(reason, format string, args ...any) *fault.Error {
	return fault.Newf(fault.CredentialInvalid, format, args...).With("reason", reason)
}

// wrapContext and dataContext differ in their first word, so that one ciphertext is never taken for the other.
func wrapContext(header, context []byte) []byte {
	return bytes.Join([][]byte{[]byte("key\x00"), header, context}, nil)
}

func dataContext(context []byte) []byte {
	return bytes.Join([][]byte{[]byte("data\x00"), {version}, context}, nil)
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fault.From(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fault.From(err)
	}
	return aead, nil
}

// SealedWith is the id of the master key that sealed bytes need, as [Keyring.Keys] lists it.
func SealedWith(sealed []byte) (id string, ok bool) {
	if len(sealed) < headerSize || !bytes.HasPrefix(sealed, []byte(magic)) {
		return "", false
	}
	return hex.EncodeToString(sealed[len(magic)+1 : headerSize]), true
}
