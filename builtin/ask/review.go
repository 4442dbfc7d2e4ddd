package ask

import (
	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/node"
)

type reviewConfig struct {
	_ struct{} `must:"review_criteria"`

	Config
	ReviewType string        `json:"review_type" enum:"quality_assurance|security_review|compliance_check|code_review|content_moderation|financial_audit|legal_review|medical_review|safety_inspection" doc:"What sort of review it is." zh:"评审类型。"`
	Reviewers  []node.Scalar `json:"reviewers" names:"person" required:"true" doc:"Who judges." zh:"评审人。"`
	Scoring    string        `json:"scoring_system" enum:"pass_fail|numeric_scale|letter_grade|checklist|custom" doc:"How criteria are judged." zh:"评分方式。"`
	Range      scoreRange    `json:"score_range" doc:"The least and the greatest score." zh:"分数范围。"`
	Threshold  float64       `json:"passing_threshold" doc:"The score that passes." zh:"及格分数。"`
	Evidence   bool          `json:"require_evidence" doc:"Whether a judgement needs a reason." zh:"是否要求依据。"`
	Consensus  bool          `json:"consensus_required" doc:"Whether all reviewers must agree." zh:"是否要求一致。"`
}

type scoreRange struct {
	Min float64 `json:"min" doc:"The least score." zh:"最低分。"`
	Max float64 `json:"max" doc:"The greatest score." zh:"最高分。"`
}

func (s *scoreRange) Defaults() { s.Min, s.Max = 1, 5 }

func (c *reviewConfig) Defaults() {
	c.Config.Defaults()
	c.Range.Defaults()
	c.Type, c.ReviewType, c.Scoring, c.Threshold, c.Evidence, c.TimeoutSeconds = human.Review,
		"quality_assurance", "pass_fail", 3, true, 86400
}

func manualReview(d Deps) node.Kind {
	return humanKind(d,
		node.About{
			Name: "HUMAN_IN_THE_LOOP.MANUAL_REVIEW", Title: node.Says("Ask reviewers", "人工审核"),
			Description: node.Says("Asks reviewers to judge by criteria; they pass, fail, or disagree.", "请审核人按标准评判：通过、不通过或意见不一。"),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks a reviewer whether a text is good enough.", "请评审人判断文本是否合格。"),
					Config:  `{"title": "Review the text", "reviewers": ["user:operator"], "review_criteria": ["correct", "clear"], "scoring_system": "pass_fail", "require_evidence": false}`,
					Input:   `{"text": "Bern is in Switzerland."}`,
					Replies: []string{`{"scores": {"correct": "pass", "clear": "pass"}}`},
					Output:  `{"result": {"status": "completed", "response_type": "review", "response_data": {"scores": {"clear": "pass", "correct": "pass"}, "user_id": "operator", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "operator", "approvals": [{"person": "operator", "outcome": "confirmed", "data": "…", "channel": "in_app", "at": "…", "means": "…"}], "ai_classification": "confirmed", "passed": true, "reviews": "…", "content": {"text": "Bern is in Switzerland."}, "scores": {"clear": "pass", "correct": "pass"}}, "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg reviewConfig) (*humanAsking, error) {
			return &humanAsking{Config: cfg.Config, approvers: texts(cfg.Reviewers), review: &human.ReviewRules{
				Type: cfg.ReviewType, Criteria: cfg.Criteria, Scoring: cfg.Scoring, Min: cfg.Range.Min, Max: cfg.Range.Max,
				Threshold: cfg.Threshold, Evidence: cfg.Evidence, Consensus: cfg.Consensus,
			}}, nil
		}, func(p *node.Planning, cfg *reviewConfig) {
			d.planHuman(p, &cfg.Config, Medium{Names: "reviewers"}, func(draft *humanDraft) {
				v := draft.request.Review
				if v == nil {
					return
				}
				if v.Scoring = cfg.Scoring; !p.Dynamic("passing_threshold") {
					v.Threshold = cfg.Threshold
				}
				bound := func(name string, to *float64) {
					if b := p.Value("score_range").Get(name); b.Type == gjson.Number {
						*to = b.Num
					} else if b.Exists() {
						draft.whole = false
					}
				}
				bound("min", &v.Min)
				bound("max", &v.Max)
				if v.Scoring == "" || p.Dynamic("passing_threshold") {
					draft.whole = false
				}
			})
		})
}
