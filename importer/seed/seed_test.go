package seed_test

import (
	"testing"

	"tandem/importer/importertest"
	"tandem/importer/seed"
)

func TestOlder(t *testing.T) {
	t.Parallel()
	importertest.Conform(t, seed.Older{}, "testdata/[eo]*")
}

func TestSteps(t *testing.T) {
	t.Parallel()
	importertest.Conform(t, seed.Steps{}, "testdata/s*")
}

func FuzzOlder(f *testing.F) { importertest.Fuzz(f, seed.Older{}, "testdata/[eo]*") }

func FuzzSteps(f *testing.F) { importertest.Fuzz(f, seed.Steps{}, "testdata/s*") }

func TestSystem_Hostile(t *testing.T) {
	t.Parallel()
	importertest.Hostile(t, seed.Older{}, "testdata/older*")
	importertest.Hostile(t, seed.Steps{}, "testdata/steps*")
}
