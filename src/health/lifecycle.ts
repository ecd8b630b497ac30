/**
 * Where a process stands between its start and its end. Only while it is `ready` does `/readyz` ask for requests; what
 * reaches it before or after is served all the same.
 */
export type Lifecycle = { phase: 'starting' | 'ready' | 'stopping' }

/** Creates the lifecycle of a process that has just started. */
export function beginLifecycle(): Lifecycle {
  return { phase: 'starting' }
}
