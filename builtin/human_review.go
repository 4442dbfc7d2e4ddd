package builtin

import (
	"tandem/human"
	"tandem/node"
)

type reviewConfig struct {
	humanConfig
	ReviewType string        `json:"review_type" enum:"quality_assurance|security_review|compliance_check|code_review|content_moderation|financial_audit|legal_review|medical_review|safety_inspection"`
	Reviewers  []node.Scalar `json:"reviewers" required:"true"`
	Scoring    string        `json:"scoring_system" enum:"pass_fail|numeric_scale|letter_grade|checklist|custom"`
	Range      scoreRange    `json:"score_range"`
	Threshold  float64       `json:"passing_threshold"`
	Evidence   bool          `json:"require_evidence"`
	Consensus  bool          `json:"consensus_required"`
}

type scoreRange struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

func (s *scoreRange) Defaults() { s.Min, s.Max = 1, 5 }

func (c *reviewConfig) Defaults() {
	c.humanConfig.Defaults()
	c.Range.Defaults()
	c.Type, c.ReviewType, c.Scoring, c.Threshold, c.Evidence, c.TimeoutSeconds = human.Review, "quality_assurance", "pass_fail", 3, true, 86400
}

func manualReview() node.Kind {
	return humanKind(
		info("HUMAN_IN_THE_LOOP.MANUAL_REVIEW", "Ask reviewers", "人工审核", "Asks reviewers to judge by criteria; they pass, fail, or disagree.", "请审核人按标准评判：通过、不通过或意见不一。"),
		func(_ *node.Call, cfg reviewConfig) (*humanAsking, error) {
			return &humanAsking{humanConfig: cfg.humanConfig, approvers: texts(cfg.Reviewers), review: &human.ReviewRules{
				Type: cfg.ReviewType, Criteria: cfg.Criteria, Scoring: cfg.Scoring, Min: cfg.Range.Min, Max: cfg.Range.Max,
				Threshold: cfg.Threshold, Evidence: cfg.Evidence, Consensus: cfg.Consensus,
			}}, nil
		})
}
