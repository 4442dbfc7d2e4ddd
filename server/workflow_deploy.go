package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/validation"
	"tandem/workflow"
)

type metadataOutput struct{ Body api.WorkflowMetadata }

func (s *Server) deployWorkflow(ctx context.Context, p identity.Principal, in *WorkflowPath) (*metadataOutput, error) {
	w, err := s.o.Stores.Workflows.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if w.DeploymentStatus == store.DeploymentPending {
		return nil, fault.Newf(fault.Conflict, "workflow %q is being deployed; wait until that has ended", in.ID)
	}
	if err := s.deployable(ctx, p, &w); err != nil {
		if fault.CodeOf(err).Class() == fault.ClassInternal {
			return nil, err // the error is not about the workflow
		}
		return nil, errors.Join(err, s.o.Stores.Triggers.Fail(route.Audited(ctx, "workflow.deploy", in.ID, w.DeployedRevision,
			"failed"), p, in.ID, fault.From(err).Message))
	}
	if err := s.o.Triggers.Deploy(route.Audited(ctx, "workflow.deploy", in.ID, w.DeployedRevision, w.Revision), p, in.ID, w.Revision); err != nil {
		return nil, err
	}
	out, err := s.metadata(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out.Body.Warnings, err = s.absentFrom(ctx, p, &w)
	return out, err
}

// absentFrom lists what the newest revision of a workflow names and the workspace does not have.
func (s *Server) absentFrom(ctx context.Context, p identity.Principal, w *store.Workflow) ([]api.Problem, error) {
	revision, err := s.o.Stores.Workflows.Revision(ctx, p, w.ID, w.Revision)
	if err != nil {
		return nil, err
	}
	def, _ := s.o.Check(revision.Definition) // it could be deployed, so it can be read
	found, err := s.needs.Absent(ctx, p, def)
	return validation.Tell(route.LanguageOf(ctx), found, def), err
}

func (s *Server) metadata(ctx context.Context, p identity.Principal, id string) (*metadataOutput, error) {
	w, err := s.o.Stores.Workflows.Get(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return &metadataOutput{tellWorkflow(&w)}, nil
}

// deployable returns an error when a workflow's newest revision cannot be deployed.
func (s *Server) deployable(ctx context.Context, p identity.Principal, w *store.Workflow) error {
	revision, err := s.o.Stores.Workflows.Revision(ctx, p, w.ID, w.Revision)
	if err != nil {
		return err
	}
	def, problems := s.o.Check(revision.Definition)
	if def == nil || workflow.HasErrors(problems) {
		return validation.Refusal(problems)
	}
	var missing []string
	var fields []api.FaultField
	for i := range def.Nodes {
		kind := def.Nodes[i].Kind()
		if _, ok := s.o.Registry.Get(kind); ok {
			continue
		}
		fields = append(fields, api.FaultField{Path: fmt.Sprintf("nodes[%d].subtype", i), Message: fmt.Sprintf("%s cannot be run by this installation", kind)})
		if !slices.Contains(missing, kind) {
			missing = append(missing, kind)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fault.Newf(fault.Unsupported, "this installation cannot run %s; take the nodes out or use another kind", strings.Join(missing, ", ")).With("fields", fields)
	}
	if err := s.needs.Lacking(ctx, p, def, problems); err != nil {
		return err
	}
	_, ready, err := s.o.Revisions.Request(ctx, p, w.ID, "latest") // which makes it ready to run
	if err != nil {
		return err
	}
	for _, t := range ready.Graph.Triggers {
		if n := &ready.Graph.Nodes[t]; !s.o.Triggers.Registers(n.Kind) {
			missing = append(missing, n.Kind)
			fields = append(fields, api.FaultField{Path: fmt.Sprintf("nodes[%d].subtype", t), Message: fmt.Sprintf("the trigger %q cannot be registered by this installation", n.ID)})
		}
	}
	if len(missing) > 0 {
		return fault.Newf(fault.Unsupported, "this installation cannot register %s; disable the trigger or use another kind", strings.Join(missing, ", ")).With("fields", fields)
	}
	return nil
}

func (s *Server) undeployWorkflow(ctx context.Context, p identity.Principal, in *WorkflowPath) (*metadataOutput, error) {
	w, err := s.o.Stores.Workflows.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if w.DeployedRevision == 0 && w.DeploymentStatus != store.DeploymentFailed && w.DeploymentStatus != store.DeploymentPending {
		return nil, fault.Newf(fault.Conflict, "workflow %q is not deployed; its deployment_status is %q", in.ID, w.DeploymentStatus)
	}
	if err := s.o.Triggers.Undeploy(route.Audited(ctx, "workflow.undeploy", in.ID, w.DeployedRevision, nil), p, in.ID); err != nil {
		return nil, err
	}
	return s.metadata(ctx, p, in.ID)
}
