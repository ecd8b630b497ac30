import type postgres from 'postgres'

/** A pool as the driver has it. Statements that carry a guarantee are written out in SQL with it. */
export type Sql = postgres.Sql<{ int8: number }>

/** A unit of work: a function that takes one as its first parameter writes in its caller's commit. */
export type Tx = postgres.ISql<{ int8: number }>
