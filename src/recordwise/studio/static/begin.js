import {say} from "./dom.js";

export const openBegin = () => say("#intro", "Start the studio with a plan: recordwise studio plan.toml");
