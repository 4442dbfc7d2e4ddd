package app

import (
	"context"

	"tandem/doctor"
	"tandem/node"
	"tandem/outbound"
	"tandem/revisions"
	"tandem/store"
)

// ReportUpgrade says what a start of this program with the same options would do with the database, and what becomes of the executions in
// it that have not ended. It changes nothing, and another process may have the database open. Of the options it looks at Dir, Database and
// Extensions: kinds that a program brings are known to it.
func ReportUpgrade(ctx context.Context, o Options) (doctor.Upgrade, error) {
	set, err := partsWith(outbound.Options{}, askable(), o.Extensions)
	if err != nil {
		return doctor.Upgrade{}, err
	}
	var kinds node.Registry
	kinds.Register(set.Kinds...)
	return doctor.ReportUpgrade(ctx, o.Dir, o.Database, func(r store.Revision, templates revisions.TemplateSet, pinned string) error {
		_, _, err := revisions.Compile(r, templates, pinned, &kinds, &kinds)
		return err
	})
}
