package respond

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/store"
)

// MaxFile is how large a file in an answer may be.
const MaxFile = sheet.MaxFile

// AnswerFile is a file in an answer, as payloads have files.
type AnswerFile = sheet.File

// KeepFiles stores the files of an answer, so that the record of the answer has references only. What is not a file is left as it
// is, for the desk to refuse.
func (h *Pages) KeepFiles(ctx context.Context, p identity.Principal, i store.Interaction, data json.RawMessage) (json.RawMessage, error) {
	request, err := human.ReadRequest(i)
	if err != nil {
		return nil, err
	}
	var answer, values map[string]json.RawMessage
	if i.Purpose != human.PurposeNode || json.Unmarshal(data, &answer) != nil || json.Unmarshal(answer["field_values"], &values) != nil {
		return data, nil
	}
	changed := false
	for _, field := range human.FormOf(i, request).Entries {
		if field.Kind != form.File || field.Group != form.GroupFields || len(values[field.Name]) == 0 {
			continue
		}
		path := "response_data.field_values." + field.Name
		kept, err := h.keepInline(ctx, p, path, values[field.Name])
		if err != nil {
			return nil, err
		}
		if kept != nil {
			if values[field.Name], err = json.Marshal(kept); err != nil {
				return nil, fault.Newf(fault.Internal, "file %q cannot be told: %w", field.Name, err)
			}
			changed = true
		}
	}
	if !changed {
		return data, nil
	}
	if answer["field_values"], err = json.Marshal(values); err != nil {
		return nil, fault.Newf(fault.Internal, "the answer cannot be told: %w", err)
	}
	return json.Marshal(answer)
}

// keepInline stores a file that came as base64, and completes one that is stored already; nil: it is neither.
func (h *Pages) keepInline(ctx context.Context, p identity.Principal, path string, raw json.RawMessage) (*AnswerFile, error) {
	var given struct {
		AnswerFile
		Base64 *string `json:"base64"`
	}
	if json.Unmarshal(raw, &given) != nil || given.Blob == "" && given.Base64 == nil {
		return nil, nil
	}
	if given.Base64 != nil {
		content, err := base64.StdEncoding.DecodeString(*given.Base64)
		if err != nil {
			return nil, api.WrongField(path+".base64", "this is not base64 (with + and /, padded)")
		}
		if len(content) > MaxFile {
			return nil, api.WrongField(path, "the file has more than %d MiB", MaxFile>>20)
		}
		return h.keepFile(ctx, p, given.Name, given.ContentType, bytes.NewReader(content))
	}
	blob, err := h.o.Blobs.Stat(ctx, p, given.Blob)
	if errors.Is(err, store.ErrNotFound) {
		return nil, api.WrongField(path+".blob", "there is no file %q in this workspace", given.Blob)
	}
	if err != nil {
		return nil, err
	}
	return &AnswerFile{Blob: blob.Hash, Name: sheet.FileName(given.Name), ContentType: sheet.FileType(given.ContentType),
		Size: blob.Size, SHA256: blob.Hash}, nil
}

func (h *Pages) keepFile(ctx context.Context, p identity.Principal, name, contentType string, content io.Reader) (*AnswerFile, error) {
	return sheet.KeepFile(ctx, h.o.Blobs, p, name, contentType, content)
}

// A file that came with a form that was refused is kept, and the page carries what is known of it, sealed: so that nobody can
// name a file that they have not sent to this question.

func keptContext(interaction string) []byte { return []byte("tandem answer file\x00" + interaction) }

func (h *Pages) sealKept(interaction string, f *AnswerFile) (string, error) {
	plain, err := json.Marshal(f)
	if err != nil {
		return "", fault.Newf(fault.Internal, "a file cannot be told: %w", err)
	}
	sealed, err := h.o.Keyring.Seal(plain, keptContext(interaction))
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// openKept is nil for what this server has not sealed for the question.
func (h *Pages) openKept(interaction, text string) *AnswerFile {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || text == "" {
		return nil
	}
	plain, err := h.o.Keyring.Open(sealed, keptContext(interaction))
	f := &AnswerFile{}
	if err != nil || json.Unmarshal(plain, f) != nil {
		return nil
	}
	return f
}
