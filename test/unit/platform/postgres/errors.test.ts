import postgres from 'postgres'
import { expect, it } from 'vitest'
import {
  isDatabaseUnavailable,
  violatesConstraint,
} from '../../../../src/platform/postgres/errors.ts'

/** An error of the server; the driver's types omit its parameter. */
const fail = (fields: object): Error => Reflect.construct(postgres.PostgresError, [fields])

it.each([
  ['failure on connection marked as essential: 10.0.0.2:5432', true],
  ['server closed the connection unexpectedly', true],
  ['SSL SYSCALL error: EOF detected', true],
  ['could not commit transaction for shard 102008 on at least one active node', true],
  ['cache lookup failed for relation 1', false],
])('an internal error "%s" says that the database is out of reach: %s', (message, isLost) => {
  expect(isDatabaseUnavailable(fail({ code: 'XX000', severity: 'ERROR', message }))).toBe(isLost)
})

it.each([
  [{ constraint_name: 'refunds_pkey' }, true],
  [{ message: 'duplicate key value violates unique constraint "refunds_pkey_102030"' }, true],
  [{ message: 'duplicate key value violates unique constraint "refunds_pkey_old"' }, false],
  [{ constraint_name: 'payments_pkey' }, false],
])('the constraint of %j is recognised: %s', (fields, isFound) => {
  const error = fail({ code: '23505', message: '', ...fields })
  expect(violatesConstraint(error, 'refunds_pkey')).toBe(isFound)
})
