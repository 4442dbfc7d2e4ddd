package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	yaml "go.yaml.in/yaml/v3"

	"tandem/examples"
	"tandem/fault"
	"tandem/llm"
	"tandem/payload"
	"tandem/validation"
)

// demoProfile is the id of the profile that every workspace has: a scripted model without a key. A profile that is
// stored under this id takes its place.
const demoProfile = "demo"

// builtInDemo is the profile that is built in, read when it is first wanted. read-only
var builtInDemo = sync.OnceValues(readDemo)

func readDemo() (profile llm.Profile, err error) {
	raw, err := yamlToJSON(examples.DemoProfile)
	if err != nil {
		return profile, fault.Newf(fault.Internal, "the built-in profile %q: %w", demoProfile, err)
	}
	if err := payload.ReadKnown(raw, &profile); err != nil {
		return profile, fault.Newf(fault.Internal, "the built-in profile %q cannot be read: %w", demoProfile, err)
	}
	return profile, nil
}

// profilesDir is where the profiles of a directory of workflows are.
const profilesDir = "profiles"

// keepProfiles keeps the profiles beside the workflows of a directory, as the API would. A stored profile with the same id
// is not replaced: its owner may have put another model there.
func (i *Instance) keepProfiles(ctx context.Context, o ServeOptions) (kept []string, err error) {
	dir := filepath.Join(o.Workflows, profilesDir)
	entries, err := os.ReadDir(dir)
	if o.Workflows == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "the directory of profiles, %q, cannot be read: %w", dir, err)
	}
	c, err := i.connect(o.Version, o.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.pipe.close()) }()
	for _, e := range entries {
		if e.IsDir() || !isDocument(e.Name()) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		id, err := profileID(name)
		if err != nil {
			return kept, err
		}
		_, err = i.stores.Profiles.Get(ctx, Local(), id)
		if err == nil {
			continue
		}
		if fault.CodeOf(err) != fault.NotFound {
			return kept, err
		}
		profile, err := c.SetProfile(ctx, name, nil)
		if err != nil {
			return kept, fmt.Errorf("keep %s: %w", name, err)
		}
		kept = append(kept, profile.ID)
	}
	return kept, nil
}

// profileID is the id of the profile in a file: the one it names, or the file's name.
func profileID(file string) (string, error) {
	data, problem := validation.ReadFile(file, nil)
	if problem != nil {
		return "", fault.Newf(fault.Invalid, "%s: %s", file, problem.Says())
	}
	raw, err := yamlToJSON(data)
	if err != nil {
		return "", fault.Newf(fault.Invalid, "%s: %w", file, err)
	}
	base := filepath.Base(file)
	return cmp.Or(gjson.GetBytes(raw, "id").String(), strings.TrimSuffix(base, filepath.Ext(base))), nil
}

// isDocument says by its name that a file is YAML or JSON.
func isDocument(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// yamlToJSON turns a file that people write, YAML or JSON, into JSON. It reverses [toYAML], for files without numbers
// that need all their digits.
func yamlToJSON(data []byte) (json.RawMessage, error) {
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return raw, nil
}
