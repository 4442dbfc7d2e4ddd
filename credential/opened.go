package credential

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/fault"
)

// Opened is a credential in use. Until it is released the [Redactor] that it was opened with takes its secrets out of whatever leaves the
// program.
type Opened struct {
	ID   string
	Type string
	// Data is the fields of the type, as a JSON object. Nothing may use it, or a slice of it, after Release.
	Data json.RawMessage
	// Renew returns the credential anew when the service did not take its token; nil: there is nothing to renew. The old one is released
	// with the new one.
	Renew func(ctx context.Context, refused string) (Opened, error)

	release func()
}

// Release ends the use of the credential and clears its data. Releasing it twice, or one that holds nothing, does no harm.
func (o *Opened) Release() {
	if release := o.Keep(); release != nil {
		release()
	}
}

// Read reads the fields into a struct.
func (o *Opened) Read(into any) error {
	if json.Unmarshal(o.Data, into) != nil {
		return fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", o.ID)
	}
	return nil
}

// Fields are the fields, each by its name. They must not be used after Release.
func (o *Opened) Fields() (gjson.Result, error) {
	var object json.RawMessage
	err := o.Read(&object)
	return gjson.ParseBytes(object), err
}

// Keep hands the duty to release to the caller: Release does nothing after that, and the caller must call the returned function instead. It
// is nil when there is nothing to release.
func (o *Opened) Keep() (release func()) {
	release, o.release = o.release, nil
	return release
}

// OnRelease is the credential with something more to do when it is released.
func (o Opened) OnRelease(do func()) Opened {
	before := o.release
	o.release = func() {
		if before != nil {
			before()
		}
		do()
	}
	return o
}

// Opener opens a credential of one workspace, which must be of one of the types if any are named. The caller releases it, unless who handed
// out the opener says that it does. Errors are *fault.Error.
type Opener func(ctx context.Context, id string, types ...string) (Opened, error)

// OpenAs opens a credential of a type and makes of it what a service is called with. The caller calls release when it is done; after an
// error there is nothing to release.
func OpenAs[T any](ctx context.Context, open Opener, id, kind string, read func(Opened) (T, error)) (use T, release func(), err error) {
	c, err := open(ctx, id, kind)
	if err != nil {
		return use, nil, err
	}
	if use, err = read(c); err != nil {
		c.Release()
		return use, nil, err
	}
	return use, c.Release, nil
}

// SealData checks the data of a credential against its type and seals it for its place.
func (k *Keyring) SealData(t Type, workspace, id string, data json.RawMessage) ([]byte, error) {
	if err := t.Validate(data); err != nil {
		return nil, err
	}
	return k.Seal(data, Context(workspace, id, t.Name))
}

// OpenData opens a credential for use: its secrets are held by the redactor before anybody has the data.
func (k *Keyring) OpenData(r *Redactor, t Type, workspace, id string, sealed []byte) (Opened, error) {
	data, err := k.Open(sealed, Context(workspace, id, t.Name))
	if err != nil {
		return Opened{}, err
	}
	secrets, err := t.Secrets(data)
	if err != nil {
		clear(data)
		return Opened{}, err
	}
	forget := r.Hold(secrets...)
	return Opened{ID: id, Type: t.Name, Data: data, release: func() {
		clear(data)
		forget()
	}}, nil
}
