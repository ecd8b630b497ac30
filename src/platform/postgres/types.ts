import type postgres from 'postgres'

/** A pool of the driver. Statements that carry a guarantee are written in SQL with it. */
export type Sql = postgres.Sql<{ int8: number }>

/** A unit of work. A function that takes one as its first parameter writes in its caller's commit. */
export type Tx = postgres.ISql<{ int8: number }>
