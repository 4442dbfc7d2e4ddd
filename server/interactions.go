package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/human"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/story"
)

type (
	interactionsInput struct {
		route.Paging
		Mine      bool     `query:"mine" doc:"only those that wait for the caller: pending ones that they have answered, while others still have to, are left out"`
		Answered  bool     `query:"answered" doc:"with mine: also pending ones that the caller has answered already"`
		Status    []string `query:"status,explode" doc:"several, or one list with commas: pending, completed, timeout, cancelled, error"`
		Execution string   `query:"execution_id" maxLength:"200"`
		Family    bool     `query:"family" doc:"with execution_id: also those of the executions that it started"`
		Language  string   `query:"language" enum:"en,zh" doc:"of the titles; left out, that of each question"`
		Purpose   string   `query:"purpose" enum:"human_node,confirm,param,tool_approval,outcome_unknown,budget,drift,activation"`
	}
	getInteractionInput struct {
		InteractionPath
		Language string `query:"language" enum:"en,zh" doc:"of the form; left out, that of the question"`
	}
	respondInput struct {
		InteractionPath
		Body api.RespondRequest
	}
	delegateInput struct {
		InteractionPath
		Body api.DelegateRequest
	}
	cancelInteractionInput struct {
		InteractionPath
		Body *api.CancelInteractionRequest `required:"false"`
	}
	linkInput struct {
		InteractionPath
		Body api.LinkRequest
	}
	overrideInput struct {
		InteractionPath
		Body api.OverrideRequest
	}
	overruleInput struct {
		InteractionPath
		Response string `path:"response_id" maxLength:"200"`
		Body     api.OverruleRequest
	}
	interactionsOutput struct{ Body api.Interactions }
	detailOutput       struct{ Body api.InteractionDetail }
	interactionOutput  struct{ Body api.Interaction }
	linkOutput         struct{ Body api.Link }
)

// InteractionPath names a question.
type InteractionPath struct {
	ID string `path:"id" maxLength:"200"`
}

// interactions registers questions to people. Everybody with a role may read them; the desk decides who may answer one,
// withdraw it or get a link: those who are asked, or who have started the execution, and not only by their role.
func (s *Server) interactions() {
	op := route.Tagged("interactions")
	listed := op(http.MethodGet, "/interactions", "list-interactions", "List questions to people")
	listed.Description = "Pending ones first: by priority (5 first), then age, the oldest first. Then those that have ended, the newest first."
	respond := op(http.MethodPost, "/interactions/{id}/respond", "respond-to-interaction", "Answer a question")
	respond.Description = "For those who are asked, whatever their role. The answer is checked against the question; all that is wrong is told at once. " +
		"The question may stay pending: then more people have to answer. One that has ended is refused with 409, and details say how it ended. " +
		"The value of a file field is {base64, name, content_type?}, or {blob} of a file that is stored already."
	delegate := op(http.MethodPost, "/interactions/{id}/delegate", "delegate-interaction", "Let somebody else answer in one's place")
	delegate.Description = "Where the question allows it. An admin may hand on the answer of another, named in from, with a reason in note; that is recorded as what it is and told to who answers then."
	override := op(http.MethodPost, "/interactions/{id}/override", "override-interaction", "Decide a question in the place of those who are asked")
	override.Description = "It ends the question, whatever votes it wants, and is recorded and told to those who were asked as an override by this admin, with its reason. " +
		"An admin who may not answer because they started the execution may not override either."
	cancel := op(http.MethodPost, "/interactions/{id}/cancel", "cancel-interaction", "Withdraw a question")
	cancel.Description = "For admins, editors, operators and who started the execution. The node that asks is told that it was cancelled."
	remind := op(http.MethodPost, "/interactions/{id}/remind", "remind-interaction", "Remind those who are asked, now")
	remind.Description = "For admins, editors, operators and who started the execution; once a minute."
	remind.Responses = map[string]*huma.Response{}
	s.DeclareProblem(&remind, http.StatusTooManyRequests)
	link := op(http.MethodPost, "/interactions/{id}/link", "link-interaction", "Make a link to the response page")
	link.Description = "A link answers in the name of its recipient, so it is shown to them alone. An admin can have it sent to them: the answer says to which address of theirs then, and has no url. That of a form for anyone is made by admins, editors, operators and who started the execution. " +
		"It is good for one answer, a public form's until the question ends; the server keeps no copy of it. Opening it shows the form and changes nothing."
	overrule := op(http.MethodPost, "/interactions/{id}/responses/{response_id}/overrule", "overrule-response", "Correct how a reply in prose was understood")
	overrule.Description = "For those who may answer the question."

	route.Handle(s.Router, listed, route.Readers(), s.listInteractions)
	route.Handle(s.Router, op(http.MethodGet, "/interactions/{id}", "get-interaction", "Read a question with its replies and messages"), route.Readers(), s.getInteraction)
	route.Handle(s.Router, respond, route.Readers(), s.respondToInteraction)
	route.Handle(s.Router, delegate, route.Readers(), s.delegateInteraction)
	route.Handle(s.Router, override, route.Admins(), s.overrideInteraction)
	route.Handle(s.Router, cancel, route.Readers(), s.cancelInteraction)
	route.Handle(s.Router, remind, route.Readers(), s.remindInteraction)
	route.Handle(s.Router, link, route.Readers(), s.linkInteraction)
	route.Handle(s.Router, overrule, route.Readers(), s.overruleResponse)
}

func (s *Server) listInteractions(ctx context.Context, p identity.Principal, in *interactionsInput) (*interactionsOutput, error) {
	q := store.InteractionQuery{Execution: in.Execution, Family: in.Family, Purpose: in.Purpose, Page: in.StorePage()}
	var err error
	if q.Statuses, err = readInteractionStatuses(route.Listed(in.Status)); err != nil {
		return nil, err
	}
	if in.Mine {
		if q.Approvers, err = s.seats(ctx, p); err != nil {
			return nil, err
		}
		if q.NotOf = p.User; !in.Answered {
			q.NotAnsweredBy = p.User
		}
	}
	page, err := s.o.Stores.Interactions.List(ctx, p, q)
	if err != nil {
		return nil, err
	}
	told := story.TellInteractions(page.Interactions)
	for n, i := range page.Interactions {
		told[n].Title = story.TellTitle(i, in.Language)
	}
	return &interactionsOutput{api.Interactions{Interactions: told, TotalCount: page.Total, Page: in.Page, PageSize: in.PageSize}}, nil
}

func readInteractionStatuses(names []string) ([]store.InteractionStatus, error) {
	known := []store.InteractionStatus{store.InteractionPending, store.InteractionCompleted, store.InteractionTimeout,
		store.InteractionCancelled, store.InteractionError}
	var statuses []store.InteractionStatus
	for _, name := range names {
		status := store.InteractionStatus(strings.ToLower(name))
		if status == "canceled" {
			status = store.InteractionCancelled
		}
		if !slices.Contains(known, status) {
			return nil, api.WrongField("query.status", "%q is not a status of an interaction; there are pending, completed, timeout, cancelled and error", name)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

// seats are the approver strings that include the caller. A caller that is not a user of the workspace, as the command line on its
// own data may be, has those of its id and roles.
func (s *Server) seats(ctx context.Context, p identity.Principal) ([]string, error) {
	user, err := s.o.Stores.Users.Get(ctx, p, p.User)
	if errors.Is(err, store.ErrNotFound) {
		user, err = identity.User{Workspace: p.Workspace, ID: p.User, Roles: p.Roles}, nil
	}
	if err != nil {
		return nil, err
	}
	return s.o.Desk.Media().Seats(user), nil
}

func (s *Server) getInteraction(ctx context.Context, p identity.Principal, in *getInteractionInput) (*detailOutput, error) {
	out, err := s.stories.InteractionDetail(ctx, p, in.ID, route.LanguageOf(ctx))
	if err != nil {
		return nil, err
	}
	i, err := s.o.Stores.Interactions.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out.Form = story.TellForm(i, in.Language)
	return &detailOutput{*out}, nil
}

func (s *Server) respondToInteraction(ctx context.Context, p identity.Principal, in *respondInput) (*interactionOutput, error) {
	i, err := s.o.Stores.Interactions.Get(ctx, p, in.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	data := in.Body.ResponseData
	if may, _ := s.o.Desk.May(ctx, p, i); err == nil && may { // files are stored only for those who may answer; the desk refuses others
		if data, err = s.pages.KeepFiles(ctx, p, i, data); err != nil {
			return nil, err
		}
	}
	i, err = s.o.Desk.Respond(ctx, p, in.ID, human.Submission{Data: data, ArgumentsHash: in.Body.ArgumentsHash, Channel: human.InApp})
	return toldChange(i, err)
}

func (s *Server) delegateInteraction(ctx context.Context, p identity.Principal, in *delegateInput) (*interactionOutput, error) {
	return toldChange(s.o.Desk.Delegate(ctx, p, in.ID, in.Body.From, in.Body.To, in.Body.Note))
}

func (s *Server) overrideInteraction(ctx context.Context, p identity.Principal, in *overrideInput) (*interactionOutput, error) {
	i, err := s.o.Stores.Interactions.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	data, err := s.pages.KeepFiles(ctx, p, i, in.Body.ResponseData)
	if err != nil {
		return nil, err
	}
	return toldChange(s.o.Desk.Override(ctx, p, in.ID, human.Submission{Data: data, ArgumentsHash: in.Body.ArgumentsHash,
		Channel: human.InApp}, in.Body.Reason))
}

func (s *Server) cancelInteraction(ctx context.Context, p identity.Principal, in *cancelInteractionInput) (*interactionOutput, error) {
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return toldChange(s.o.Desk.Cancel(ctx, p, in.ID, reason))
}

func (s *Server) remindInteraction(ctx context.Context, p identity.Principal, in *InteractionPath) (*interactionOutput, error) {
	return toldChange(s.o.Desk.Remind(ctx, p, in.ID))
}

func (s *Server) linkInteraction(ctx context.Context, p identity.Principal, in *linkInput) (*linkOutput, error) {
	made, err := s.o.Desk.NewLink(ctx, p, in.ID, in.Body.Recipient)
	if err != nil {
		return nil, err
	}
	return &linkOutput{api.Link{URL: made.URL, ExpiresAt: made.Expires, SentTo: made.SentTo}}, nil
}

func (s *Server) overruleResponse(ctx context.Context, p identity.Principal, in *overruleInput) (*interactionOutput, error) {
	return toldChange(s.o.Desk.Overrule(ctx, p, in.ID, in.Response,
		human.Submission{Data: in.Body.ResponseData, Channel: human.InApp}, in.Body.Reason))
}

func toldChange(i store.Interaction, err error) (*interactionOutput, error) {
	if err != nil {
		return nil, err
	}
	return &interactionOutput{story.TellInteraction(i)}, nil
}
