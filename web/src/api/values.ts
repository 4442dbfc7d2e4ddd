/**
 * valuesOf lists the values of an enum of the API, in the order of a table that has to name each of them: one that the server has and the
 * table does not is refused when the types are checked.
 */
export const valuesOf = <T extends string>(table: Record<T, unknown>): T[] => Object.keys(table) as T[]
