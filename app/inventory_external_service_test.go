package app

func serviceProofs() map[string]map[string]proof {
	return map[string]map[string]proof{"EXTERNAL_ACTION.API_CALL": sentTo("builtin/service.TestAPICall", "operation_id", "method", "path", "endpoint", "headers", "validate_response")}
}
