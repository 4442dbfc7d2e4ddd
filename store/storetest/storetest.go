// Package storetest is what every driver of package store must do. A driver's test calls [Run], or, when it has only a
// part, [RunHost] (what hosts need), [RunRecords] (accounts, definitions, questions, what was spent) or [RunJournal] (the journal,
// the inbox and the timers). [RunEpochs] is about a second
// process, and is for every driver.
//
// The suite uses workspaces of its own with random names, so drivers may give it the same database again and again, and
// it never expects a database to be empty. Only tests import it.
package storetest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Open gives a test a store. Whatever it opens it closes with t.Cleanup.
type Open func(t *testing.T) store.Stores

// Run holds a driver to everything.
func Run(t *testing.T, open Open) {
	RunHost(t, open)
	RunRecords(t, open)
	cases(t, open, []testCase{
		{"Executions/ReadAsWritten", testReadAsWritten},
		{"Overviews", testOverview},
		{"Workflows/DeleteWaitsForExecutions", testWorkflowDelete},
		{"Workflows/Drafts", testDrafts},
		{"Workflows/Statistics", testStatistics},
		{"Triggers/OneStartForOneDelivery", testArrivals},
		{"Memories/ChangeReadForget", testMemories},
		{"Memories/MarksMakeRepetitionHarmless", testMemoryMarks},
		{"Memories/ConflictChangesNothing", testMemoryConflicts},
		{"Memories/ListFiltersOrdersAndPages", testMemoryList},
		{"Memories/ScopesPageByUser", testMemoryScopes},
		{"Memories/SearchWords", testMemorySearch},
		{"Memories/NearestIsExact", testMemoryNearest},
		{"Memories/PurgeWhatHasExpired", testMemoryPurge},
		{"Limits/PutGetCount", testLimits},
		{"Upkeep/RefusesWhatIsNeeded", testRemovalRefused},
		{"Upkeep/RemovesEverythingOfAFamily", testRemoval},
		{"Upkeep/ByAgeAndByCount", testRemovable},
		{"Upkeep/RetainedAreEnteredOnce", testEnterRetained},
		{"Upkeep/Deliveries", testRetainDeliveries},
		{"Upkeep/BlobsThatNothingNames", testSweep},
		{"Tenants/SeeNothingOfEachOther", testTenants},
		{"Tenants/NobodyIsRefused", testNobody},
	})
}

// RunRecords holds a driver to the records that it keeps besides what hosts need.
func RunRecords(t *testing.T, open Open) {
	cases(t, open, []testCase{
		{"Ledger/OpenSettleSum", testLedger},
		{"Ledger/ReservesWithinLimits", testReserve},
		{"Profiles/PutGetListDelete", testProfiles},
		{"Budgets/OneOfThoseWhoWaitAsks", testBudgetWaits},
		{"Workflows/RevisionsAreImmutable", testRevisions},
		{"Workflows/TextsAreKept", testSources},
		{"Workflows/ListFiltersAndPages", testWorkflowList},
		{"Templates/PutGetListDelete", testTemplates},
		{"Accounts/WorkspacesUsersTokens", testAccounts},
		{"Accounts/TokensHaveScopesAndUse", testTokenUse},
		{"Sessions/EndInManyWays", testSessions},
		{"Invitations/AreUsedOnce", testInvitations},
		{"Logins/BelongToOneUser", testLogins},
		{"Contacts/PutListDelete", testContacts},
		{"Proofs/TriesAndLimits", testProofs},
		{"Audit/CommitsWithTheChange", testAuditWithChange},
		{"Audit/FiltersAndPages", testAuditQuery},
		{"Audit/RetentionSaysSo", testAuditRetention},
		{"Credentials/CreateUpdateListDelete", testCredentials},
		{"Credentials/Names", testCredentialNames},
		{"Credentials/Renewal", testCredentialRenewal},
		{"Interactions/OpenWithARow", testAsk},
		{"Interactions/ChangeIsAllOrNothing", testInteractionChange},
		{"Interactions/OneOfManyEndsIt", testInteractionRace},
		{"Interactions/AnswerAgainstWithdrawal", testWithdrawalRace},
		{"Interactions/WithdrawnIsCancelledAndDue", testWithdraw},
		{"Interactions/OperatorPauses", testPauses},
		{"Interactions/ListOrdersFiltersAndPages", testInteractionList},
		{"Interactions/FamilyIsEverythingBelow", testInteractionFamily},
		{"Interactions/DueInOrderOfTime", testInteractionsDue},
		{"Interactions/Unasked", testUnasked},
		{"Interactions/ToldWithoutAPause", testTell},
		{"Interactions/MessagesLinksThreadsAccounts", testDeliveries},
		{"Interactions/ChosenAccounts", testChosenAccounts},
		{"Interactions/Isolation", testInteractionIsolation},
		{"MCPServers/PutGetListDelete", testMCPServers},
		{"MCPServers/ActivateRepinDeactivate", testMCPActivations},
		{"MCPServers/Policies", testMCPPolicies},
		{"MCPServers/Acceptances", testMCPAcceptances},
		{"Triggers/Deployment", testDeployment},
		{"Triggers/DueInOrderOfTime", testTriggersDue},
		{"Triggers/KeysEndWithTheWorkflow", testDeletedKeys},
		{"Triggers/OneAnswer", testAnswers},
	})
}

// RunHost holds a driver to what hosts need: what RunJournal has, summaries and large values.
func RunHost(t *testing.T, open Open) {
	RunJournal(t, open)
	cases(t, open, []testCase{
		{"Executions/SummariesFollowAppends", testSummaries},
		{"Executions/ListFiltersAndPages", testExecutionList},
		{"Executions/UnfinishedByPriorityThenAge", testUnfinished},
		{"Executions/IdempotentStart", testKeys},
		{"Blobs/ByContent", testBlobs},
	})
}

// RunJournal holds a driver to the journal, the inbox, the timers and logs.
func RunJournal(t *testing.T, open Open) {
	cases(t, open, []testCase{
		{"Logs/LevelsPagesAndLimit", testLogs},
		{"Journal/AppendsAndReads", testAppend},
		{"Journal/ReadsLongOnesWhileWriting", testLongJournal},
		{"Journal/RefusesWhatCannotBe", testAppendChecks},
		{"Journal/ConflictChangesNothing", testConflict},
		{"Journal/OneOfManyWins", testRace},
		{"Journal/ManyWritersManyExecutions", testConcurrency},
		{"Journal/ConflictsDoNotSpoilOthers", testConflictIsolation},
		{"Journal/SnapshotReplaces", testSnapshot},
		{"Journal/Isolation", testJournalIsolation},
		{"Inbox/DeliverPendingTake", testInbox},
		{"Inbox/CommitsWithARow", testDeliverWithARow},
		{"Inbox/DedupIsRemembered", testDedup},
		{"Timers/OrderAndPages", testTimers},
		{"Timers/SetMoveClear", testTimerChanges},
	})
}

type testCase struct {
	name string
	run  func(t *testing.T, s store.Stores)
}

func cases(t *testing.T, open Open, all []testCase) {
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// tenant makes a workspace of its own.
func tenant(t *testing.T) identity.Principal {
	t.Helper()
	return identity.Principal{Workspace: "ws-" + strings.ToLower(rand.Text()), User: "ann", Roles: []identity.Role{identity.Admin}}
}

// started makes an execution with one row.
func started(t *testing.T, s store.Stores, p identity.Principal, id string, change ...func(*store.Append)) {
	t.Helper()
	a := first(id)
	for _, f := range change {
		f(a)
	}
	if err := s.Journal.Append(t.Context(), p, a); err != nil {
		t.Fatalf("start execution %q: %v", id, err)
	}
}

func first(id string) *store.Append {
	return &store.Append{Execution: id, Time: 1000, Body: []byte("row 1"), Create: &store.Execution{
		ID: id, Status: engine.StatusRunning, Priority: 3, TriggerType: "MANUAL", User: "ann"}}
}

// next is an append after a row.
func next(id string, after uint64) *store.Append {
	return &store.Append{Execution: id, After: after, Time: 1000 + int64(after), Body: fmt.Appendf(nil, "row %d", after+1)}
}

func mustAppend(t *testing.T, s store.Stores, p identity.Principal, a *store.Append) {
	t.Helper()
	if err := s.Journal.Append(t.Context(), p, a); err != nil {
		t.Fatalf("append to %q after %d: %v", a.Execution, a.After, err)
	}
}

// rows reads a journal as text, "seq@time:body".
func rows(t *testing.T, s store.Stores, p identity.Principal, id string, after uint64) []string {
	t.Helper()
	var all []string
	for r, err := range s.Journal.Rows(t.Context(), p, id, after) {
		if err != nil {
			t.Fatalf("rows of %q: %v", id, err)
		}
		all = append(all, fmt.Sprintf("%d@%d:%s", r.Seq, r.Time, r.Body))
	}
	return all
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); err == nil || got != code {
		t.Errorf("%s: got error %v with code %q, want code %q", what, err, got, code)
	}
}

// must returns a value, or ends the test with the error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// isConflict tells a conflict from another error.
func isConflict(err error) bool { return errors.Is(err, store.ErrConflict) }
