import type { Command } from 'commander'
import { confirmNothingLost, confirmRestore } from '../maintenance/restore.ts'
import { readActor } from './database.ts'
import { type Json, jsonOption } from './options.ts'
import { type Cli, NO_KEY } from './print.ts'

export function addRestoredCommand(program: Command, { emit, onDatabase, log }: Cli): void {
  program
    .command('restored')
    .description('let refunds and events be sent again after the database was restored')
    .option('--nothing-lost', 'no commit was lost: cursors and ETags stay valid, nothing is held')
    .addOption(jsonOption())
    .action(async ({ json, nothingLost }: Json & { nothingLost?: boolean }) => {
      if (nothingLost) {
        const stop = await onDatabase((sql) => confirmNothingLost({ sql, log }, readActor()))
        const text = stop ? 'refunds and events are sent again' : 'nothing was stopped'
        emit(json, { stopped: stop ?? null }, `${text}\n`)
        return
      }
      const ctx = { log, encryption: NO_KEY }
      const done = await onDatabase((sql) => confirmRestore({ ...ctx, sql }, readActor()))
      const { epoch, held, asked } = done
      emit(
        json,
        done,
        `epoch ${epoch}: refunds and events are sent again; ${held} refunds that were not sent are held for a person, and the gateway is asked about ${asked} transactions with open refunds; see docs/operations.md\n`,
      )
    })
}
