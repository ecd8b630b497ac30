import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundle, linkPackage } from '../../support/bundle.ts'

/** The worker in one file of JavaScript: it is started hundreds of times. */
export type BuiltWorker = { file: string; remove(): void }

/** Builds the worker into a folder of its own. */
export function buildWorker(): BuiltWorker {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-worker-'))
  linkPackage(folder)
  const file = bundle('test/nightly/crash-points/worker.ts', folder, 'worker')
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
