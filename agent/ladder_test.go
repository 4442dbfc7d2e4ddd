package agent_test

import (
	"fmt"
	"testing"

	"tandem/agent"
	"tandem/engine"
)

func TestCall_FailsByClass(t *testing.T) {
	t.Parallel()
	climbed := "alternative_1 none\nrepair_1 none\nreplan_1 none\n"
	walkAll(t, map[string]path{
		"ALostConnectionIsWorthOneCallMore": {
			config: auto(), script: opened + called(1, "tool:search") + "step_1 !network_error/connection\nstep_1_try_2\n" + ended(2),
			log: []string{"step_1 search completed"},
		},
		"OnlyOne": {
			config: auto(), script: opened + called(1, "tool:search") + "step_1 !network_error/connection\nstep_1_try_2 !network_error/connection\n" + climbed + ended(2),
			log: []string{"step_1 search failed connection"}, fails: 1,
		},
		"NotIfTheRuntimeForbids": {
			config: auto(), script: opened + called(1, "tool:search") + "step_1 !network_error/connection/final\n" + climbed + ended(2),
			log: []string{"step_1 search failed connection"}, fails: 1,
		},
		"NeverForWhatMustNotBeRepeated": {
			config: auto(), script: opened + called(1, "once:send") + "step_1 !network_error/connection\n" + climbed + ended(2),
			log: []string{"step_1 send failed connection"}, fails: 1,
		},
		"ATimeoutAndAPermissionGoUpARung": {
			config: auto(), script: opened + called(1, "tool:search") + "step_1 !timeout\nalternative_1 tool:find\nparams_1_2\nrisk_1_2 low\nstep_1_2 !forbidden\n" +
				"repair_1 tool:look\nparams_1_3\nrisk_1_3 low\nstep_1_3\n" + ended(2),
			log: []string{"step_1 search failed timeout", "step_1_2 find failed alternative permission", "step_1_3 look completed repair"},
		},
		"AnythingElseCounts": {
			config: auto(), script: opened + called(1, "tool:search") + "step_1 !internal\nalternative_1 tool:find\nparams_1_2\nrisk_1_2 low\nstep_1_2\n" + ended(2),
			log: []string{"step_1 search failed other", "step_1_2 find completed alternative"}, fails: 1,
		},
		"AnUnclearFailureIsAnalyzed": {
			config: auto(), script: opened + called(1, "tool:search") + "step_1 !tool_error/unclear\nanalyze_1 no_param_error\nalternative_1 none\nrepair_1 {}\nparams_1_2\nrisk_1_2 low\nstep_1_2\n" + ended(2),
			log: []string{"step_1 search failed other", "step_1_2 search completed repair"}, fails: 1,
		},
		"ThreeFailTheTask": {
			config: auto(), script: opened + called(1, "tool:a") + "step_1 !internal/other\nalternative_1 tool:b\nparams_1_2\nrisk_1_2 low\nstep_1_2 !tool_error\nanalyze_1 no_param_error\n" +
				"repair_1 tool:c\nparams_1_3\nrisk_1_3 low\nstep_1_3 !internal/other",
			status: engine.StatusError, fails: 3,
			log: []string{"step_1 a failed other", "step_1_2 b failed alternative other", "step_1_3 c failed repair other"},
		},
		"TheCounterIsTheTasks": {
			config: auto(), script: opened + called(1, "tool:a") + "step_1 !internal\nalternative_1 tool:b\nparams_1_2\nrisk_1_2 low\nstep_1_2\n" +
				called(2, "tool:a") + "step_2 !internal\nalternative_2 tool:b\nparams_2_2\nrisk_2_2 low\nstep_2_2\n" + called(3, "tool:a") + "step_3 !internal",
			status: engine.StatusError, fails: 3,
			log: []string{"step_1 a failed other", "step_1_2 b completed alternative", "step_2 a failed other", "step_2_2 b completed alternative", "step_3 a failed other"},
		},
	})
}

func TestLadder_EachRungOnce(t *testing.T) {
	t.Parallel()
	refused := func(name string) string { return name + " !forbidden/permission\n" }
	again := func(k int) string { return fmt.Sprintf("params_1_%d\nrisk_1_%d low\n", k, k) }
	walkAll(t, map[string]path{
		"ToTheTop": {
			config: auto(), script: opened + called(1, "tool:a") + refused("step_1") +
				"alternative_1 tool:b\n" + again(2) + refused("step_1_2") +
				"repair_1 tool:c\n" + again(3) + refused("step_1_3") +
				"replan_1\nplan_1_2 tool:d\n" + again(4) + refused("step_1_4") + ended(2),
			log: []string{"step_1 a failed permission", "step_1_2 b failed alternative permission", "step_1_3 c failed repair permission", "step_1_4 d failed replan permission"},
			// A step that has failed for good counts once.
			fails: 1, plans: 2,
		},
		"AReplannedStepSucceeds": {
			config: auto(), script: opened + called(1, "tool:a") + refused("step_1") + "alternative_1 none\nrepair_1 none\nreplan_1\nplan_1_2 tool:d\n" + again(2) + "step_1_2\n" + runs(2) + ended(3),
			log: []string{"step_1 a failed permission", "step_1_2 d completed replan", "step_2 search completed"}, plans: 2,
		},
		"AReplanMayBeFinal": {
			config: auto(), script: opened + called(1, "tool:a") + refused("step_1") + "alternative_1 none\nrepair_1 none\nreplan_1\nplan_1_2 FINAL\nsummary",
			log: []string{"step_1 a failed permission"}, plans: 2,
		},
		"AReplanHasItsOwnTries": {
			config: auto(), script: opened + "plan_1 unknown:x\nplan_1_2 unknown:x\nplan_1_3 tool:a\nparams_1\nrisk_1 low\n" + refused("step_1") +
				"alternative_1 none\nrepair_1 none\nreplan_1\nplan_1_4 unknown:x\nplan_1_5 unknown:x\nplan_1_6 unknown:x\nsummary",
			log: []string{"step_1 a failed permission"}, plans: 2, final: agent.FinalUnplanned,
		},
		"AnswersOfNoUseAreANo": {
			config: auto(), script: opened + called(1, "tool:a") + refused("step_1") + "alternative_1 !output_invalid\nrepair_1 !model_refused\nreplan_1 !output_invalid\n" + ended(2),
			log: []string{"step_1 a failed permission"}, fails: 1,
		},
		"NoAlternativeIsTheSameToolOrNone": {
			config: auto(), script: opened + called(1, "tool:a") + refused("step_1") + "alternative_1 tool:a\nrepair_1 unknown:x\nreplan_1 none\n" + ended(2),
			log: []string{"step_1 a failed permission"}, fails: 1,
		},
		"AStepThatFailedOtherwiseIsNotCountedTwice": {
			config: auto(), script: opened + called(1, "tool:a") + "step_1 !internal/other\nalternative_1 none\nrepair_1 FINAL\nreplan_1 none\n" + ended(2),
			log: []string{"step_1 a failed other"}, fails: 1,
		},
		"StepsThatFailForGoodFailTheTask": {
			config: agent.Config{Auto: true, Limits: agent.Limits{Failures: 2}}, script: opened + called(1, "tool:a") + refused("step_1") + "alternative_1 none\nrepair_1 none\nreplan_1 none\n" +
				called(2, "tool:a") + "step_2 !timeout\nalternative_2 none\nrepair_2 none\nreplan_2 none",
			log: []string{"step_1 a failed permission", "step_2 a failed timeout"}, fails: 2, status: engine.StatusError,
		},
	})
}

func TestParameters_AreMended(t *testing.T) {
	t.Parallel()
	wrong := func(name string) string { return name + " !invalid_input/parameters\n" }
	var derived string
	for n := 2; n <= 6; n++ {
		derived += fmt.Sprintf("params_1_%d\nrisk_1_%d low\n", n, n) + wrong(fmt.Sprintf("step_1_try_%d", n))
	}
	manual := opened + "plan_1 tool:a\nparams_1\nrisk_1 low\nconfirm_1 yes\n"
	walkAll(t, map[string]path{
		"AutoDerivesFiveTimesThenAsks": {
			config: auto(), script: opened + called(1, "tool:a") + wrong("step_1") + derived + "missing_1\nask_1 given\nfill_1\nrisk_1_7 low\nstep_1_try_7\n" + ended(2),
			log: []string{"step_1 a completed"},
		},
		"TheModelSaysItIsOne": {
			config: auto(), script: opened + called(1, "tool:a") + "step_1 !tool_error\nanalyze_1 param_error\nparams_1_2\nrisk_1_2 low\nstep_1_try_2 !tool_error\nanalyze_1_2 param_error\nparams_1_3\nrisk_1_3 low\nstep_1_try_3\n" + ended(2),
			log: []string{"step_1 a completed"},
		},
		"OtherArgumentsAreJudgedAnew": {
			config: auto(), script: opened + called(1, "once:a") + wrong("step_1") + "params_1_2\nrisk_1_2 high\nconfirm_1 yes\nstep_1_try_2 !invalid_input/parameters\nparams_1_3\nrisk_1_3 high\nconfirm_1_2 no",
			status: engine.StatusCanceled, log: []string{"step_1 a canceled"},
		},
		"ManualAsksAtOnceAndConfirmsAgain": {
			script: manual + wrong("step_1") + "missing_1\nask_1 given\nfill_1\nrisk_1_2 low\nconfirm_1_2 yes\nstep_1_try_2\n" + ended(2),
			log:    []string{"step_1 a completed"},
		},
		"ARepeatedCallNeedsNoSecondConfirmation": {
			script: manual + "step_1 !network_error/connection\nstep_1_try_2\n" + ended(2), log: []string{"step_1 a completed"},
		},
		"NobodyGivesThem": {script: manual + wrong("step_1") + "missing_1\nask_1 nothing", status: engine.StatusCanceled, log: []string{"step_1 a canceled"}},
		"AWithdrawnQuestionCancels": {
			script: manual + wrong("step_1") + "missing_1\nask_1 !canceled", status: engine.StatusCanceled, log: []string{"step_1 a canceled"},
		},
		"ATextOfNoUseIsAskedWithout": {
			script: manual + wrong("step_1") + "missing_1 !output_invalid\nask_1 given\nfill_1 !output_invalid\nmissing_1_2\nask_1_2 given\nfill_1_2\nrisk_1_2 low\nconfirm_1_2 yes\nstep_1_try_2\n" + ended(2),
			log:    []string{"step_1 a completed"},
		},
		"ArgumentsThatCannotBeDerivedAreAskedFor": {
			script: opened + "plan_1 tool:a\nparams_1 !output_invalid\nmissing_1\nask_1 given\nfill_1\nrisk_1 low\nconfirm_1 yes\nstep_1\n" + ended(2),
			log:    []string{"step_1 a completed"},
		},
		"AskingEndsToo": {
			config: agent.Config{Limits: agent.Limits{InnerCalls: 2}}, fails: 1,
			script: manual + wrong("step_1") + "missing_1\nask_1 given\nfill_1\nrisk_1_2 low\nconfirm_1_2 yes\n" + wrong("step_1_try_2") +
				"missing_1_2\nask_1_2 given\nfill_1_2\nrisk_1_3 low\nconfirm_1_3 yes\n" + wrong("step_1_try_3") + "alternative_1 none\nrepair_1 none\nreplan_1 none\n" + ended(2),
			log: []string{"step_1 a failed parameters"},
		},
		"AnotherStepHasItsOwnTries": {
			config: agent.Config{Auto: true, Limits: agent.Limits{InnerCalls: 1}},
			script: opened + called(1, "tool:a") + wrong("step_1") + "params_1_2\nrisk_1_2 low\nstep_1_try_2 !timeout\nalternative_1 tool:b\nparams_1_3\nrisk_1_3 low\n" +
				wrong("step_1_2") + "params_1_4\nrisk_1_4 low\nstep_1_2_try_2\n" + ended(2),
			log: []string{"step_1 a failed timeout", "step_1_2 b completed alternative"},
		},
	})
}
