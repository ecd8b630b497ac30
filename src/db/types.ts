import { parse } from 'postgres-array'

/** The arrays that statements take and give, by their numbers in `pg_type`. */
const INT4S = 1007
const TEXTS = 1009
const INT8S = 1016
const FLOAT8S = 1022
const UUIDS = 2951
const ALL = [INT4S, TEXTS, INT8S, FLOAT8S, UUIDS]

/** The query builder writes its arrays itself. */
type Elements = string | readonly (string | number | null)[]

/** Whole numbers of 64 bits; none that is read goes beyond 2^53. */
const INT8 = { to: 20, from: [20], serialize: String, parse: Number }

/**
 * How the driver writes arrays of text, uuid, int4, int8 and float8, and reads them (as texts; only those of
 * text are ever read). An array of another type has to be added here: the server refuses what is written
 * without it.
 */
const ARRAYS = {
  to: TEXTS,
  from: ALL,
  serialize: writeArray,
  parse: readArray,
}

/** What the driver is told of types, beyond what it knows. */
export const TYPES = { int8: INT8, arrays: ARRAYS }
export type Types = { int8: number; arrays: Elements }

function readArray(text: string): Elements {
  return parse(text)
}

/** A literal of Postgres (8.15.2), one element after the other in quotes. */
function writeArray(elements: Elements): string {
  if (typeof elements === 'string') return elements
  return `{${elements.map(writeElement).join()}}`
}

function writeElement(element: string | number | null): string {
  return element === null ? 'null' : `"${String(element).replace(/["\\]/g, '\\$&')}"`
}
