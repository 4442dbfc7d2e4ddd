import { Fragment, jsx } from "react/jsx-runtime"

/** jsxDEV is what sources are translated into while they are worked on; React as it is in production does not have it. */
export const jsxDEV = (type: Parameters<typeof jsx>[0], props: unknown, key?: string) => jsx(type, props, key)
export { Fragment }
