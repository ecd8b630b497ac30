import { playRefundFormStories } from '../console/refund-form/play-stories.ts'
import { playCallStories } from '../console/story/play-stories.ts'
import { playTaskStories } from '../console/tasks/play-stories.ts'

playCallStories(false)
playRefundFormStories(false)
playTaskStories(false)
